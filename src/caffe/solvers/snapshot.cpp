#include "caffe/solvers/snapshot.hpp"

#include <glog/logging.h>

#include <filesystem>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/net/weights.hpp"

namespace caffe {
namespace {

void WriteBinaryState(const std::string& file, const std::vector<std::shared_ptr<Blob>>& history,
                      const SolverProgress& progress) {
  SolverState state;
  state.set_iter(progress.iter);
  state.set_current_step(progress.current_step);
  state.set_learned_net(progress.learned_net);
  state.set_solver_type(progress.solver_type);
  state.set_net_name(progress.net_name);
  state.set_random_seed(progress.seed);
  for (const auto& [layer, records] : progress.delivered_records) {
    DataCursor* cursor = state.add_data_cursor();
    cursor->set_layer(layer);
    cursor->set_records(records);
  }
  for (const std::shared_ptr<Blob>& blob : history) WriteBlob(*blob, /*write_diff=*/false, state.add_history());
  WriteBinaryProto(file, state);
}

void WriteHdf5State(const std::string& file, const std::vector<std::shared_ptr<Blob>>& history,
                    const SolverProgress& progress) {
  Hdf5Writer writer(file);
  writer.WriteInteger("iter", progress.iter);
  writer.WriteString("learned_net", progress.learned_net);
  writer.WriteInteger("current_step", progress.current_step);
  writer.CreateGroup("history");
  for (size_t i = 0; i < history.size(); ++i) {
    const Blob& blob = *history[i];
    writer.WriteFloats(StrCat("history/", i), blob.shape(),
                       {blob.cpu_data<float>(), static_cast<size_t>(blob.count())});
  }
  // What BVLC's files do not have goes into a group of its own, which its reader passes over.
  writer.WriteString("cortado/solver_type", progress.solver_type);
  writer.WriteString("cortado/net_name", progress.net_name);
  writer.WriteString("cortado/random_seed", std::to_string(progress.seed));
  for (const auto& [layer, records] : progress.delivered_records) {
    writer.WriteInteger("cortado/data_cursor/" + layer, static_cast<int64_t>(records));
  }
  writer.Commit();
}

}  // namespace

std::string SnapshotPrefix(const SolverParameter& param, const std::string& solver_file) {
  const std::filesystem::path file(solver_file.empty() ? "solver" : solver_file);
  if (!param.has_snapshot_prefix()) return (file.parent_path() / file.stem()).string();
  if (std::filesystem::is_directory(param.snapshot_prefix())) {
    return (std::filesystem::path(param.snapshot_prefix()) / file.stem()).string();
  }
  return param.snapshot_prefix();
}

void CheckSnapshotWritable(const std::string& prefix) {
  const std::string probe = prefix + ".tempfile";
  WithContext("solver: snapshot_prefix '" + prefix + "' cannot be written",
              [&] { WriteFileAtomically(probe, std::string_view("")); });
  std::filesystem::remove(probe);
}

std::string WriteSnapshot(const std::string& prefix, bool as_hdf5, bool write_diff, const Net& net,
                          const std::vector<std::shared_ptr<Blob>>& history, SolverProgress progress) {
  const std::string stem = StrCat(prefix, "_iter_", progress.iter);
  const std::string model = stem + (as_hdf5 ? ".caffemodel.h5" : ".caffemodel");
  const std::string state = stem + (as_hdf5 ? ".solverstate.h5" : ".solverstate");
  const char* kind = as_hdf5 ? "HDF5" : "binary proto";
  LOG(INFO) << "Snapshotting to " << kind << " file " << model;
  if (as_hdf5) {
    net.ToHDF5(model, write_diff);
  } else {
    NetParameter param;
    net.ToProto(&param, write_diff);
    WriteBinaryProto(model, param);
  }
  progress.learned_net = model;
  LOG(INFO) << "Snapshotting solver state to " << kind << " file " << state;
  if (as_hdf5) {
    WriteHdf5State(state, history, progress);
  } else {
    WriteBinaryState(state, history, progress);
  }
  return state;
}

SnapshotReader::SnapshotReader(const std::string& file) : file_(file) {
  file.ends_with(".h5") ? ReadHdf5() : ReadBinary();
}

void SnapshotReader::ReadBinary() {
  SolverState state;
  ReadBinaryProto(file_, &state);
  if (!state.has_iter()) {
    NetParameter net;
    bool is_net = false;
    try {
      ReadBinaryProto(file_, &net);
      is_net = net.layer_size() > 0 || net.layers_size() > 0;
    } catch (const Error&) {
    }
    throw IoError(is_net ? file_ + ": holds weights, not a solver state; give it to -weights, or the .solverstate "
                                   "beside it to -snapshot"
                         : file_ + ": not a solver state (it has no iteration)");
  }
  progress_.iter = state.iter();
  progress_.current_step = state.current_step();
  progress_.learned_net = state.learned_net();
  progress_.solver_type = state.solver_type();
  progress_.net_name = state.net_name();
  progress_.has_seed = state.has_random_seed();
  progress_.seed = state.random_seed();
  for (const DataCursor& cursor : state.data_cursor()) {
    progress_.delivered_records[cursor.layer()] = cursor.records();
  }
  history_.assign(state.history().begin(), state.history().end());
}

void SnapshotReader::ReadHdf5() {
  const Hdf5Reader reader(file_);
  if (!reader.Contains("iter")) {
    throw IoError(file_ + (reader.Contains("data") ? ": holds weights, not a solver state; give it to -weights"
                                                   : ": not a solver state (it has no 'iter')"));
  }
  progress_.iter = static_cast<int>(reader.ReadInteger("iter"));
  progress_.current_step = static_cast<int>(reader.ReadInteger("current_step"));
  if (reader.Contains("learned_net")) progress_.learned_net = reader.ReadString("learned_net");
  for (const std::string& index : reader.LinksOf("history")) {
    const std::string dataset = "history/" + index;
    WriteBlobFloats(reader.ShapeOf(dataset), reader.ReadFloats(dataset), &history_.emplace_back());
  }
  if (!reader.Contains("cortado")) return;
  progress_.solver_type = reader.ReadString("cortado/solver_type");
  progress_.net_name = reader.ReadString("cortado/net_name");
  progress_.has_seed = true;
  progress_.seed = std::stoull(reader.ReadString("cortado/random_seed"));
  if (!reader.Contains("cortado/data_cursor")) return;
  for (const std::string& layer : reader.LinksOf("cortado/data_cursor")) {
    progress_.delivered_records[layer] =
        static_cast<uint64_t>(reader.ReadInteger("cortado/data_cursor/" + layer));
  }
}

std::string SnapshotReader::WeightsFile() const {
  const std::filesystem::path recorded = progress_.learned_net;
  if (recorded.empty() || std::filesystem::exists(recorded)) return recorded;
  const std::filesystem::path beside = std::filesystem::path(file_).parent_path() / recorded.filename();
  return std::filesystem::exists(beside) ? beside : recorded;
}

void SnapshotReader::ReadHistory(const std::vector<std::shared_ptr<Blob>>& history) const {
  Require(history_.size() == history.size(), file_, ": has ", history_.size(), " history blobs, the solver ",
          history.size(), "; it was written by another solver type or net");
  for (size_t i = 0; i < history.size(); ++i) {
    WithContext(StrCat(file_, ": history blob ", i), [&] { ReadBlob(history_[i], history[i].get()); });
  }
}

}  // namespace caffe
