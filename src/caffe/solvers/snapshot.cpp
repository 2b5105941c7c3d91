#include "caffe/solvers/snapshot.hpp"

#include <glog/logging.h>

#include <filesystem>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/io/hdf5_files.hpp"

namespace caffe {
namespace {

bool IsHdf5(const std::string& file) { return file.ends_with(".h5"); }

std::string FileName(const SolverParameter& param, int iter, const char* ending) {
  const bool hdf5 = param.snapshot_format() == SolverParameter::HDF5;
  return StrCat(param.snapshot_prefix(), "_iter_", iter, ending, hdf5 ? ".h5" : "");
}

[[noreturn]] void ThrowIsModel(const std::string& file) {
  throw InvalidArgument(file + ": holds weights, not a solver state; give it to -weights, or the "
                               ".solverstate beside it to -snapshot");
}

bool IsModel(const std::string& file) {
  NetParameter net;
  return net.ParseFromString(ReadFile(file)) && net.layer_size() + net.layers_size() > 0;
}

SolverState ReadBinaryState(const std::string& file) {
  SolverState state;
  try {
    ReadBinaryProto(file, &state);
  } catch (const IoError&) {
    if (std::filesystem::exists(file) && IsModel(file)) ThrowIsModel(file);
    throw;
  }
  if (state.has_iter()) return state;
  if (IsModel(file)) ThrowIsModel(file);
  throw IoError(file + ": is no solver state (it has no iter); give a .solverstate file");
}

SolverState ReadHdf5State(const std::string& file) {
  const Hdf5Reader reader(file);
  if (!reader.Contains("iter")) {
    if (reader.Contains("data")) ThrowIsModel(file);
    throw IoError(file + ": is no solver state (it has no iter); give a .solverstate.h5 file");
  }
  SolverState state;
  state.set_iter(static_cast<int>(reader.ReadInteger("iter")));
  if (reader.Contains("learned_net")) state.set_learned_net(reader.ReadString("learned_net"));
  if (reader.Contains("current_step")) {
    state.set_current_step(static_cast<int>(reader.ReadInteger("current_step")));
  }
  if (reader.Contains("minimum_loss")) {
    state.set_minimum_loss(static_cast<float>(reader.ReadDoubles("minimum_loss").at(0)));
  }
  if (reader.Contains("iter_last_event")) {
    state.set_iter_last_event(static_cast<int>(reader.ReadInteger("iter_last_event")));
  }
  if (reader.Contains("history")) {
    for (const std::string& link : reader.LinksOf("history")) {
      const std::string name = "history/" + link;
      WriteBlobDoubles(reader.ShapeOf(name), reader.ReadDoubles(name), state.add_history());
    }
  }
  if (reader.Contains("random_seed")) {
    state.set_random_seed(static_cast<uint64_t>(reader.ReadInteger("random_seed")));
  }
  if (reader.Contains("data_cursor")) {
    for (const std::string& link : reader.LinksOf("data_cursor")) {
      const std::string group = "data_cursor/" + link;
      DataCursor* cursor = state.add_data_cursor();
      cursor->set_layer(reader.ReadString(group + "/layer"));
      cursor->set_records(static_cast<uint64_t>(reader.ReadInteger(group + "/records")));
    }
  }
  if (reader.Contains("solver_type")) state.set_solver_type(reader.ReadString("solver_type"));
  if (reader.Contains("net_name")) state.set_net_name(reader.ReadString("net_name"));
  return state;
}

void WriteHdf5State(const std::string& file, const SolverState& state) {
  Hdf5Writer writer(file);
  writer.WriteInteger("iter", state.iter());
  writer.WriteString("learned_net", state.learned_net());
  writer.WriteInteger("current_step", state.current_step());
  writer.WriteDoubles("minimum_loss", Shape{1}, std::vector<double>{state.minimum_loss()});
  writer.WriteInteger("iter_last_event", state.iter_last_event());
  writer.CreateGroup("history");
  for (int i = 0; i < state.history_size(); ++i) {
    const BlobProto& blob = state.history(i);
    const std::string name = StrCat("history/", i);
    if (blob.double_data_size() > 0) {
      writer.WriteDoubles(name, ShapeOf(blob), ReadBlobDoubles(blob));
    } else {
      writer.WriteFloats(name, ShapeOf(blob), ReadBlobFloats(blob));
    }
  }
  writer.WriteInteger("random_seed", static_cast<int64_t>(state.random_seed()));
  for (int i = 0; i < state.data_cursor_size(); ++i) {
    const std::string group = StrCat("data_cursor/", i);
    writer.WriteString(group + "/layer", state.data_cursor(i).layer());
    writer.WriteInteger(group + "/records", static_cast<int64_t>(state.data_cursor(i).records()));
  }
  writer.WriteString("solver_type", state.solver_type());
  writer.WriteString("net_name", state.net_name());
  writer.Commit();
}

}  // namespace

std::string ModelFileName(const SolverParameter& param, int iter) {
  return FileName(param, iter, ".caffemodel");
}

std::string StateFileName(const SolverParameter& param, int iter) {
  return FileName(param, iter, ".solverstate");
}

std::string SnapshotPrefix(const std::string& solver_file, const std::string& given) {
  const std::filesystem::path path(solver_file);
  if (given.empty()) return std::filesystem::path(path).replace_extension().string();
  if (std::filesystem::is_directory(given)) return (std::filesystem::path(given) / path.stem()).string();
  return given;
}

void CheckSnapshotPrefix(const std::string& prefix) {
  Require(!prefix.empty(), "solver: snapshot_prefix is not set; set it, or turn snapshots off with "
                           "snapshot: 0 and snapshot_after_train: false");
  const std::string probe = prefix + ".tempfile";
  try {
    WriteFileAtomically(probe, std::string_view("probe"));
  } catch (const IoError& error) {
    throw IoError(StrCat("solver: snapshots cannot be written to snapshot_prefix '", prefix, "': ",
                         error.what(), "; create the folder or choose another prefix"));
  }
  std::error_code ignored;
  std::filesystem::remove(probe, ignored);
}

void WriteModel(const std::string& file, const Net& net, bool write_diff) {
  if (IsHdf5(file)) {
    LOG(INFO) << "Snapshotting to HDF5 file " << file;
    net.ToHDF5(file, write_diff);
    return;
  }
  LOG(INFO) << "Snapshotting to binary proto file " << file;
  NetParameter param;
  net.ToProto(&param, write_diff);
  WriteBinaryProto(file, param);
}

void WriteSolverState(const std::string& file, const SolverState& state) {
  if (IsHdf5(file)) {
    LOG(INFO) << "Snapshotting solver state to HDF5 file " << file;
    WriteHdf5State(file, state);
  } else {
    LOG(INFO) << "Snapshotting solver state to binary proto file " << file;
    WriteBinaryProto(file, state);
  }
}

SolverState ReadSolverState(const std::string& file) {
  return IsHdf5(file) ? ReadHdf5State(file) : ReadBinaryState(file);
}

std::string FindLearnedNet(const SolverState& state, const std::string& state_file) {
  const std::filesystem::path recorded(state.learned_net());
  if (std::filesystem::exists(recorded)) return recorded.string();
  const std::filesystem::path beside =
      std::filesystem::path(state_file).parent_path() / recorded.filename();
  if (std::filesystem::exists(beside)) return beside.string();
  throw IoError(StrCat(state_file, ": its weights are neither at '", recorded.string(), "' nor at '",
                       beside.string(), "'; put the .caffemodel beside the state file"));
}

}  // namespace caffe
