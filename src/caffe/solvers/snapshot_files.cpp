#include "caffe/solvers/snapshot_files.hpp"

#include <glog/logging.h>

#include <charconv>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

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

bool IsSnapshotEnding(std::string_view ending) {
  return ending == ".caffemodel" || ending == ".caffemodel.h5" || ending == ".solverstate" ||
         ending == ".solverstate.h5";
}

// Parses "mnist_iter_100.caffemodel", as written by runs with prefix "mnist".
std::optional<SnapshotName> ParseSnapshotName(const std::string& prefix, const std::string& name) {
  const std::string start = prefix + "_iter_";
  if (!name.starts_with(start)) return std::nullopt;
  SnapshotName parsed;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + start.size(), end, parsed.iteration);
  parsed.ending.assign(rest, end);
  if (error != std::errc() || parsed.iteration < 0 || !IsSnapshotEnding(parsed.ending))
    return std::nullopt;
  return parsed;
}

// Returns the progress if the state and its weights are complete and belong together.
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

// The files <prefix>_iter_N<ending> and <prefix>_iter_N<ending>.h5 by iteration, latest first.
std::multimap<int64_t, std::string, std::greater<>> FilesByIteration(
    const std::filesystem::path& prefix, std::string_view ending) {
  std::multimap<int64_t, std::string, std::greater<>> files;
  std::error_code error;
  const std::filesystem::path folder = prefix.has_parent_path() ? prefix.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const auto parsed = ParseSnapshotName(prefix.filename().string(), name);
    if (!parsed || !parsed->ending.starts_with(ending)) continue;
    files.emplace(parsed->iteration, (prefix.parent_path() / name).string());
  }
  return files;
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
  // Does not use StrCat(), whose stream truncates a text if memory runs out.
  return prefix + "_iter_" + std::to_string(iteration);
}

std::string BestStem(const std::string& prefix) {
  return prefix + "_best";
}

std::string StateFileOf(const std::string& stem, bool as_hdf5) {
  return stem + (as_hdf5 ? ".solverstate.h5" : ".solverstate");
}

std::string WeightsFileOf(const std::string& stem, bool as_hdf5) {
  return stem + (as_hdf5 ? ".caffemodel.h5" : ".caffemodel");
}

std::vector<std::string> SnapshotsOfRun(const std::string& prefix, const SolverProgress& progress) {
  std::vector<std::string> own;
  const auto states = FilesByIteration(prefix, ".solverstate");
  for (auto state = states.rbegin(); state != states.rend(); ++state) {
    const auto& [iteration, file] = *state;
    if (iteration > progress.iter) continue;
    try {
      const SolverProgress other = SnapshotReader(file).progress();
      const bool is_own = other.has_seed && other.seed == progress.seed &&
                          other.solver == progress.solver && other.net_hash == progress.net_hash &&
                          other.iter == iteration;
      if (is_own) own.push_back(file);
    } catch (const Error&) {  // of an unknown run, so it is kept
    }
  }
  return own;
}

void RemoveSnapshot(const std::string& state_file) {
  const bool as_hdf5 = state_file.ends_with(".h5");
  const std::string ending = StateFileOf("", as_hdf5);
  CAFFE_ASSERT(state_file.ends_with(ending), state_file);
  const std::string stem = state_file.substr(0, state_file.size() - ending.size());
  for (const std::string& file : {state_file, WeightsFileOf(stem, as_hdf5)}) {
    std::error_code error;
    std::filesystem::remove(file, error);
    if (error) throw IoError(StrCat(file, ": cannot be removed: ", error.message()));
  }
}

std::string NewestSnapshot(const SolverParameter& param, const std::string& solver_file) {
  std::string newest;
  const std::string prefix = SnapshotPrefix(param, solver_file);
  auto states = FilesByIteration(prefix, ".solverstate");
  // The best model's state may be the only one that is left, or newer than the others.
  for (const bool as_hdf5 : {false, true}) {
    const std::string best = StateFileOf(BestStem(prefix), as_hdf5);
    if (!IsPlainFile(best)) continue;
    if (const auto progress = WholeSnapshot(best)) states.emplace(progress->iter, best);
  }
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

std::string BestWeights(const SolverParameter& param, const std::string& solver_file) {
  const std::string prefix = SnapshotPrefix(param, solver_file);
  for (const bool as_hdf5 : {false, true}) {
    const std::string best = WeightsFileOf(BestStem(prefix), as_hdf5);
    std::error_code ignored;
    if (std::filesystem::is_regular_file(best, ignored)) return best;
  }
  if (const std::string newest = NewestSnapshot(param, solver_file); !newest.empty()) {
    const bool as_hdf5 = newest.ends_with(".h5");
    const size_t stem = newest.size() - StateFileOf("", as_hdf5).size();
    return WeightsFileOf(newest.substr(0, stem), as_hdf5);
  }
  const auto weights = FilesByIteration(prefix, ".caffemodel");
  return weights.empty() ? "" : weights.begin()->second;
}

void CheckSnapshotWritable(const SolverParameter& param, const std::string& solver_file) {
  const std::string prefix = SnapshotPrefix(param, solver_file);
  const std::filesystem::path path(prefix);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  // Names of later iterations may be longer.
  const bool as_hdf5 = param.snapshot_format() == SolverParameter::HDF5;
  const int last = param.has_max_epoch() ? std::numeric_limits<int>::max() : param.max_iter();
  const std::string longest = StateFileOf(SnapshotStem(prefix, last), as_hdf5);
  WithContext("solver: snapshot_prefix '" + prefix +
                  "' cannot be written; name a folder in which files can be made",
              [&] {
                MakeFolders(folder);
                AtomicFile(longest).Write("x");
              });
  RemoveAbandonedFiles(folder, [own = path.filename().string()](const std::string& name) {
    const std::string best = BestStem(own);
    return ParseSnapshotName(own, name).has_value() ||
           (name.starts_with(best) && IsSnapshotEnding(name.substr(best.size())));
  });
}

}  // namespace caffe
