#include "caffe/solvers/snapshot_files.hpp"

#include <glog/logging.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include "caffe/core/paths.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solvers/solver_state.hpp"

namespace caffe {
namespace {

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

// Whether the state and its weights are whole, and belong together.
std::optional<SolverProgress> WholeSnapshot(const std::string& file) {
  try {
    const SnapshotReader reader(file);
    reader.WeightsFile();
    return reader.progress();
  } catch (const Error& unreadable) {
    LOG(WARNING) << "skipping snapshot " << PrintableLines(unreadable.what());
    return std::nullopt;
  }
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

std::string SnapshotStem(const std::string& prefix, int64_t iteration) {
  // Names of files are no place for StrCat(), whose stream cuts a text short when memory runs out.
  return prefix + "_iter_" + std::to_string(iteration);
}

std::string NewestSnapshot(const SolverParameter& param, const std::string& solver_file) {
  const std::filesystem::path prefix(SnapshotPrefix(param, solver_file));
  // By iteration, latest first. One iteration may have a state of each format.
  std::multimap<int64_t, std::string, std::greater<>> states;
  std::error_code error;
  const std::filesystem::path folder = prefix.has_parent_path() ? prefix.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const auto parsed = ParseSnapshotName(prefix.filename().string(), name);
    if (!parsed || !parsed->ending.starts_with(".solverstate")) continue;
    states.emplace(parsed->iteration, (prefix.parent_path() / name).string());
  }
  std::string newest;
  for (const auto& [iteration, file] : states) {
    const std::optional<SolverProgress> progress = WholeSnapshot(file);
    if (!progress) continue;
    if (newest.empty()) newest = file;
    const bool is_own = param.random_seed() < 0 || !progress->has_seed ||
                        progress->seed == static_cast<uint64_t>(param.random_seed());
    if (!is_own) continue;
    LOG_IF(WARNING, file != newest)
        << "skipping snapshot " << newest << ": it is of another run than " << file
        << ", which has this solver's random_seed";
    return file;
  }
  return newest;
}

void CheckSnapshotWritable(const SolverParameter& param, const std::string& solver_file) {
  const std::string prefix = SnapshotPrefix(param, solver_file);
  const std::filesystem::path path(prefix);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  // Names of later iterations are longer.
  const bool as_hdf5 = param.snapshot_format() == SolverParameter::HDF5;
  const std::string longest =
      SnapshotStem(prefix, param.max_iter()) + (as_hdf5 ? ".solverstate.h5" : ".solverstate");
  WithContext("solver: snapshot_prefix '" + prefix +
                  "' cannot be written; name a folder in which files can be made",
              [&] {
                MakeFolders(folder);
                AtomicFile(longest).Write("x");
              });
  RemoveAbandonedFiles(folder, [own = path.filename().string()](const std::string& name) {
    return ParseSnapshotName(own, name).has_value();
  });
}

}  // namespace caffe
