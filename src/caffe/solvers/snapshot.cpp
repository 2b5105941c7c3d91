#include "caffe/solvers/snapshot.hpp"

#include <glog/logging.h>

#include <charconv>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>

#include "caffe/core/paths.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/net/weights.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

// What CheckSnapshotWritable() makes beside the snapshots, for a moment.
constexpr char kProbe[] = ".tempfile";

bool IsDefault(const ops::StepState& state) {
  return state.scale == 1 && state.skipped_steps == 0;
}

void WriteHdf5State(const std::vector<std::shared_ptr<Blob>>& history,
                    const SolverProgress& progress, Hdf5Writer* file) {
  Hdf5Writer& writer = *file;
  writer.WriteInteger("iter", progress.iter);
  writer.WriteString("learned_net", progress.learned_net);
  writer.WriteInteger("current_step", progress.current_step);
  writer.CreateGroup("history");
  for (size_t i = 0; i < history.size(); ++i) {
    const Blob& blob = *history[i];
    const std::string dataset = "history/" + std::to_string(i);
    const size_t count = static_cast<size_t>(blob.count());
    if (blob.data_tensor().desc().dtype == DType::kDouble) {
      writer.WriteDoubles(dataset, blob.shape(), {blob.cpu_data<double>(), count});
    } else {
      writer.WriteFloats(dataset, blob.shape(), {blob.cpu_data<float>(), count});
    }
  }
  // What BVLC's files do not have goes into a group of its own, which its reader passes over.
  writer.WriteDoubles("cortado/minimum_loss", Shape{1},
                      std::vector<double>{progress.plateau.minimum_loss});
  writer.WriteInteger("cortado/iter_last_event", progress.plateau.iter_last_event);
  if (!progress.recent_losses.empty()) {
    const auto count = static_cast<int64_t>(progress.recent_losses.size());
    writer.WriteFloats("cortado/recent_loss", Shape{count}, progress.recent_losses);
  }
  writer.WriteString("cortado/solver_type", progress.solver_type);
  writer.WriteString("cortado/net_name", progress.net_name);
  writer.WriteString("cortado/random_seed", std::to_string(progress.seed));
  const ops::StepState& scale = progress.gradient_scale;
  if (!IsDefault(scale)) {
    const std::vector<double> values = {scale.scale, scale.limit, scale.good_steps,
                                        scale.skipped_steps, scale.skipped_in_a_row};
    const auto count = static_cast<int64_t>(values.size());
    writer.WriteDoubles("cortado/gradient_scale", Shape{count}, values);
  }
  if (!progress.larc_cosines.empty()) {
    const auto count = static_cast<int64_t>(progress.larc_cosines.size());
    writer.WriteFloats("cortado/larc_cosine", Shape{count}, progress.larc_cosines);
  }
  int index = 0;
  for (const auto& [layer, records] : progress.delivered_records) {
    // By number, because a layer's name may hold slashes.
    const std::string group = "cortado/data_cursor/" + std::to_string(index++);
    writer.WriteString(group + "/layer", layer);
    writer.WriteInteger(group + "/records", static_cast<int64_t>(records));
  }
}

// The state names the weights, so both are on the disk before either gets its name: a full disk
// then leaves neither.
template <typename File>
void CommitBoth(File* model, File* state) {
  model->MakeDurable();
  state->MakeDurable();
  model->Commit();
  state->Commit();
}

// One copy of the weights is enough at a time.
void WriteBinaryModel(const Net& net, bool write_diff, AtomicFile* file) {
  NetParameter param;
  net.ToProto(&param, write_diff);
  WriteBinaryProto(param, file);
}

void WriteBinarySnapshot(const Net& net, const std::vector<std::shared_ptr<Blob>>& history,
                         const SolverProgress& progress, bool write_diff,
                         const std::string& state_name) {
  AtomicFile model(progress.learned_net), state(state_name);
  WriteBinaryModel(net, write_diff, &model);
  WriteBinaryProto(MakeSolverState(progress, history), &state);
  CommitBoth(&model, &state);
}

void WriteHdf5Snapshot(const Net& net, const std::vector<std::shared_ptr<Blob>>& history,
                       const SolverProgress& progress, bool write_diff,
                       const std::string& state_name) {
  Hdf5Writer model(progress.learned_net), state(state_name);
  TrainingNet::WriteTrained(net, write_diff, &model);
  WriteHdf5State(history, progress, &state);
  CommitBoth(&model, &state);
}

struct SnapshotName {
  int64_t iteration = 0;
  std::string ending;  // ".solverstate.h5"
};

// Parts of "mnist_iter_100.caffemodel", a file that runs with prefix "mnist" write.
std::optional<SnapshotName> ParseSnapshotName(const std::string& prefix, const std::string& name) {
  const std::string start = prefix + "_iter_";
  if (!name.starts_with(start)) return std::nullopt;
  SnapshotName parsed;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + start.size(), end, parsed.iteration);
  parsed.ending.assign(rest, end);
  const bool is_known = parsed.ending == ".caffemodel" || parsed.ending == ".caffemodel.h5" ||
                        parsed.ending == ".solverstate" || parsed.ending == ".solverstate.h5";
  if (error != std::errc() || parsed.iteration < 0 || !is_known) return std::nullopt;
  return parsed;
}

// Weights in place of a state are the likeliest mistake, so they get a text of their own.
void ThrowIfWeights(const std::string& file) {
  NetParameter net;
  try {
    ReadBinaryProto(file, &net);
  } catch (const Error&) {
    return;
  }
  if (net.layer_size() == 0 && net.layers_size() == 0) return;
  throw IoError(
      file +
      ": holds weights, not a solver state; give it to -weights, or the .solverstate beside it "
      "to -snapshot");
}

}  // namespace

std::string SnapshotPrefix(const SolverParameter& param, const std::string& solver_file) {
  const std::filesystem::path file(solver_file.empty() ? "solver" : solver_file);
  if (!param.has_snapshot_prefix()) return (file.parent_path() / file.stem()).string();
  if (IsFolder(param.snapshot_prefix())) {
    return (std::filesystem::path(param.snapshot_prefix()) / file.stem()).string();
  }
  return param.snapshot_prefix();
}

std::string NewestSnapshot(const SolverParameter& param, const std::string& solver_file) {
  const std::filesystem::path prefix(SnapshotPrefix(param, solver_file));
  std::map<int64_t, std::string, std::greater<>> states;  // by iteration, latest first
  std::error_code error;
  const std::filesystem::path folder = prefix.has_parent_path() ? prefix.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const auto parsed = ParseSnapshotName(prefix.filename().string(), name);
    if (!parsed || !parsed->ending.starts_with(".solverstate")) continue;
    states[parsed->iteration] = (prefix.parent_path() / name).string();
  }
  for (const auto& [iteration, file] : states) {
    try {
      SnapshotReader(file).WeightsFile();
      return file;
    } catch (const Error& unreadable) {
      LOG(WARNING) << "skipping snapshot " << PrintableLines(unreadable.what());
    }
  }
  return "";
}

void CheckSnapshotWritable(const std::string& prefix) {
  const std::filesystem::path path(prefix);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  WithContext("solver: snapshot_prefix '" + prefix +
                  "' cannot be written; name a folder in which files can be made",
              [&] {
                MakeFolders(folder);
                AtomicFile(prefix + kProbe).Write("x");
              });
  RemoveAbandonedFiles(folder, [own = path.filename().string()](const std::string& name) {
    return name == own + kProbe || ParseSnapshotName(own, name);
  });
}

void CheckSnapshotFits(uint64_t weight_bytes, uint64_t history_bytes) {
  // Names, shapes and the net's definition take some, too.
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

std::string WriteSnapshot(const std::string& prefix, bool as_hdf5, bool write_diff, const Net& net,
                          const std::vector<std::shared_ptr<Blob>>& history,
                          SolverProgress progress) {
  // Names of files are no place for StrCat(), whose stream cuts a text short when memory runs out.
  const std::string stem = prefix + "_iter_" + std::to_string(progress.iter);
  const std::string model = stem + (as_hdf5 ? ".caffemodel.h5" : ".caffemodel");
  const std::string state = stem + (as_hdf5 ? ".solverstate.h5" : ".solverstate");
  const char* kind = as_hdf5 ? "HDF5" : "binary proto";
  LOG(INFO) << "Snapshotting to " << kind << " file " << model;
  LOG(INFO) << "Snapshotting solver state to " << kind << " file " << state;
  progress.learned_net = model;
  if (as_hdf5) {
    WriteHdf5Snapshot(net, history, progress, write_diff, state);
  } else {
    WriteBinarySnapshot(net, history, progress, write_diff, state);
  }
  return state;
}

SolverState MakeSolverState(const SolverProgress& progress,
                            const std::vector<std::shared_ptr<Blob>>& history) {
  SolverState state;
  state.set_iter(progress.iter);
  state.set_current_step(progress.current_step);
  state.set_minimum_loss(static_cast<float>(progress.plateau.minimum_loss));
  state.set_iter_last_event(progress.plateau.iter_last_event);
  state.mutable_recent_loss()->Assign(progress.recent_losses.begin(), progress.recent_losses.end());
  state.set_learned_net(progress.learned_net);
  state.set_solver_type(progress.solver_type);
  state.set_net_name(progress.net_name);
  state.set_random_seed(progress.seed);
  for (const auto& [layer, records] : progress.delivered_records) {
    DataCursor* cursor = state.add_data_cursor();
    cursor->set_layer(layer);
    cursor->set_records(records);
  }
  if (!IsDefault(progress.gradient_scale)) {
    GradientScaleState* scale = state.mutable_gradient_scale();
    scale->set_scale(progress.gradient_scale.scale);
    scale->set_limit(progress.gradient_scale.limit);
    scale->set_good_steps(static_cast<int>(progress.gradient_scale.good_steps));
    scale->set_skipped_steps(static_cast<int64_t>(progress.gradient_scale.skipped_steps));
    scale->set_skipped_in_a_row(static_cast<int>(progress.gradient_scale.skipped_in_a_row));
  }
  state.mutable_larc_cosine()->Assign(progress.larc_cosines.begin(), progress.larc_cosines.end());
  for (const std::shared_ptr<Blob>& blob : history)
    WriteBlob(*blob, /*write_diff=*/false, state.add_history());
  return state;
}

SnapshotReader::SnapshotReader(const std::string& file) : file_(file) {
  file.ends_with(".h5") ? ReadHdf5() : ReadBinary();
}

void SnapshotReader::ReadBinary() {
  SolverState state;
  try {
    ReadBinaryProto(file_, &state);
  } catch (const IoError&) {
    ThrowIfWeights(file_);
    throw;
  }
  if (!state.has_iter()) {
    ThrowIfWeights(file_);
    throw IoError(file_ + ": not a solver state (it has no iteration)");
  }
  Take(state);
}

void SnapshotReader::Take(const SolverState& state) {
  progress_.iter = state.iter();
  progress_.current_step = state.current_step();
  progress_.plateau = {state.minimum_loss(), state.iter_last_event()};
  progress_.recent_losses.assign(state.recent_loss().begin(), state.recent_loss().end());
  progress_.learned_net = state.learned_net();
  progress_.solver_type = state.solver_type();
  progress_.net_name = state.net_name();
  progress_.has_seed = state.has_random_seed();
  progress_.seed = state.random_seed();
  for (const DataCursor& cursor : state.data_cursor()) {
    progress_.delivered_records[cursor.layer()] = cursor.records();
  }
  if (state.has_gradient_scale()) {
    const GradientScaleState& scale = state.gradient_scale();
    progress_.gradient_scale = {.scale = scale.scale(),
                                .limit = scale.limit(),
                                .good_steps = static_cast<double>(scale.good_steps()),
                                .skipped_steps = static_cast<double>(scale.skipped_steps()),
                                .skipped_in_a_row = static_cast<double>(scale.skipped_in_a_row())};
  }
  progress_.larc_cosines.assign(state.larc_cosine().begin(), state.larc_cosine().end());
  history_.assign(state.history().begin(), state.history().end());
}

void SnapshotReader::ReadHdf5() {
  const Hdf5Reader reader(file_);
  const auto refuse = [&](const std::string& name, const auto&... what) {
    throw IoError(StrCat(file_, ": '", name, "' ", what..., "; the file is damaged"));
  };
  const auto read_int = [&](const std::string& name) {
    const int64_t value = reader.ReadInteger(name);
    if (value < 0 || value > std::numeric_limits<int>::max()) refuse(name, "is ", value);
    return static_cast<int>(value);
  };
  const auto read_numbers = [&](const std::string& name, size_t least) {
    std::vector<double> numbers = reader.ReadDoubles(name);
    if (numbers.size() < least) refuse(name, "has ", numbers.size(), " of ", least, " numbers");
    return numbers;
  };
  if (!reader.Contains("iter")) {
    throw IoError(file_ + (reader.Contains("data")
                               ? ": holds weights, not a solver state; give it to -weights"
                               : ": not a solver state (it has no 'iter')"));
  }
  progress_.iter = read_int("iter");
  progress_.current_step = read_int("current_step");
  if (reader.Contains("learned_net")) progress_.learned_net = reader.ReadString("learned_net");
  for (const std::string& index : reader.LinksOf("history")) {
    const std::string dataset = "history/" + index;
    WriteBlobDoubles(reader.ShapeOf(dataset), reader.ReadDoubles(dataset),
                     &history_.emplace_back());
  }
  if (!reader.Contains("cortado")) return;
  progress_.plateau.minimum_loss = read_numbers("cortado/minimum_loss", 1)[0];
  progress_.plateau.iter_last_event = read_int("cortado/iter_last_event");
  if (reader.Contains("cortado/recent_loss")) {
    progress_.recent_losses = reader.ReadFloats("cortado/recent_loss");
  }
  progress_.solver_type = reader.ReadString("cortado/solver_type");
  progress_.net_name = reader.ReadString("cortado/net_name");
  progress_.has_seed = true;
  const std::string seed = reader.ReadString("cortado/random_seed");
  const char* end = seed.data() + seed.size();
  const auto [parsed, error] = std::from_chars(seed.data(), end, progress_.seed);
  if (error != std::errc() || parsed != end) {
    refuse("cortado/random_seed", "is '", seed, "'");
  }
  if (reader.Contains("cortado/gradient_scale")) {
    const std::vector<double> scale = read_numbers("cortado/gradient_scale", 4);
    progress_.gradient_scale = {.scale = scale[0],
                                .limit = scale[1],
                                .good_steps = scale[2],
                                .skipped_steps = scale[3],
                                .skipped_in_a_row = scale.size() > 4 ? scale[4] : 0};
  }
  if (reader.Contains("cortado/larc_cosine")) {
    const std::vector<double> cosines = reader.ReadDoubles("cortado/larc_cosine");
    progress_.larc_cosines.assign(cosines.begin(), cosines.end());
  }
  if (!reader.Contains("cortado/data_cursor")) return;
  for (const std::string& index : reader.LinksOf("cortado/data_cursor")) {
    const std::string group = "cortado/data_cursor/" + index;
    progress_.delivered_records[reader.ReadString(group + "/layer")] =
        static_cast<uint64_t>(reader.ReadInteger(group + "/records"));
  }
}

std::string SnapshotReader::WeightsFile() const {
  const std::filesystem::path recorded = progress_.learned_net;
  if (recorded.empty() || IsPlainFile(recorded)) return recorded;
  const std::filesystem::path beside =
      std::filesystem::path(file_).parent_path() / recorded.filename();
  if (IsPlainFile(beside)) return beside;
  const bool is_one_place = recorded.lexically_normal() == beside.lexically_normal();
  throw IoError(StrCat(
      file_, ": its weights are ",
      is_one_place ? StrCat("not at '", recorded.string())
                   : StrCat("neither at '", recorded.string(), "' nor at '", beside.string()),
      "'; put the .caffemodel beside the state file"));
}

void SnapshotReader::CheckHistory(const std::vector<std::shared_ptr<Blob>>& history) const {
  Require(history_.size() == history.size(), file_, ": has ", history_.size(),
          " history blobs, the solver ", history.size(),
          "; it was written by another solver type or net");
  for (size_t i = 0; i < history.size(); ++i) {
    Require(ShapeOf(history_[i]).count() == history[i]->count(), file_, ": history blob ", i,
            " has shape ", ShapeOf(history_[i]), ", the parameter ", history[i]->shape(),
            "; it was written by another net");
  }
}

void SnapshotReader::ReadHistory(const std::vector<std::shared_ptr<Blob>>& history) const {
  CheckHistory(history);
  for (size_t i = 0; i < history.size(); ++i) {
    WithContext(StrCat(file_, ": history blob ", i),
                [&] { ReadBlob(history_[i], history[i].get()); });
  }
}

}  // namespace caffe
