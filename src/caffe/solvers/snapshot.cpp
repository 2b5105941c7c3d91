#include "caffe/solvers/snapshot.hpp"

#include <glog/logging.h>

#include <optional>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/solvers/snapshot_files.hpp"

namespace caffe {
namespace {

// Only one copy of the weights exists at a time.
void WriteModel(const Net& net, bool with_gradients, AtomicFile* file) {
  NetParameter param;
  net.ToProto(&param, with_gradients);
  WriteBinaryProto(param, file);
}
void WriteModel(const Net& net, bool with_gradients, Hdf5Writer* file) {
  TrainingNet::WriteTrained(net, with_gradients, file);
}

ContentMark MarkOfWritten(const AtomicFile& file) {
  return MarkOf(file.descriptor(), file.path());
}
ContentMark MarkOfWritten(const Hdf5Writer& file) {
  return file.mark();
}

void WriteState(const SolverProgress& progress, const History& history, AtomicFile* file) {
  WriteBinaryProto(MakeSolverState(progress, history), file);
}
void WriteState(const SolverProgress& progress, const History& history, Hdf5Writer* file) {
  WriteHdf5State(progress, history, file);
}

// Both files are on disk before either is renamed to its final name, so that a full disk leaves
// neither.
template <typename File>
void WriteBoth(const SnapshotOptions& options, const std::string& state_name, const Net& net,
               const History& history, SolverProgress* progress) {
  File model(progress->learned_net);
  WriteModel(net, options.with_gradients, &model);
  model.MakeDurable();
  progress->weights = MarkOfWritten(model);
  std::optional<File> state;
  try {
    state.emplace(state_name);
    WriteState(*progress, history, &*state);
    state->MakeDurable();
  } catch (const IoError& error) {
    if (!options.check) throw;
    state.reset();
    options.check();
    model.Commit();
    throw IoError(StrCat(error.what(), "; the weights are in ", progress->learned_net,
                         ", but without this file training cannot go on from there exactly"));
  }
  if (options.check) options.check();
  model.Commit();
  state->Commit();
}

}  // namespace

void CheckSnapshotFits(uint64_t weight_bytes, uint64_t history_bytes) {
  // Reserves space for names, shapes and the net's definition.
  static constexpr uint64_t kMost = kMostBinaryProtoBytes - (uint64_t{1} << 20);
  const auto check = [](const char* what, uint64_t bytes) {
    Require(bytes <= kMost, "solver: ", what, " of ", bytes,
            " bytes cannot be snapshotted: a binary "
            "file holds at most ",
            kMost, "; set snapshot_format: HDF5");
  };
  check("weights", weight_bytes);
  check("history", history_bytes);
}

std::string WriteSnapshot(const SnapshotOptions& options, const Net& net, const History& history,
                          SolverProgress progress) {
  const std::string state = StateFileOf(options.stem, options.as_hdf5);
  progress.learned_net = WeightsFileOf(options.stem, options.as_hdf5);
  const char* kind = options.as_hdf5 ? "HDF5" : "binary proto";
  LOG(INFO) << "Snapshotting to " << kind << " file " << progress.learned_net;
  LOG(INFO) << "Snapshotting solver state to " << kind << " file " << state;
  options.as_hdf5 ? WriteBoth<Hdf5Writer>(options, state, net, history, &progress)
                  : WriteBoth<AtomicFile>(options, state, net, history, &progress);
  return state;
}

}  // namespace caffe
