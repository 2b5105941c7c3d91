// Checks that a run resumed from a snapshot ends with the bytes of one that was not interrupted.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "caffe/io/atomic_file.hpp"
#include "caffe/solver_group.hpp"

namespace caffe::testing {

// Names and contents of all snapshots in a folder.
inline std::map<std::string, std::string> SnapshotsIn(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".caffemodel") != std::string::npos ||
        name.find(".solverstate") != std::string::npos)
      files[name] = ReadFile(entry.path().string());
  }
  return files;
}

// Trains `param` to its end, with snapshots in `folder`, and once more in new solvers starting from
// the snapshot of iteration `middle`, which the first run has to write. Then all files must equal
// those of the first run, byte by byte: that snapshot, later ones, the last one and the best.
inline void ExpectExactResume(const SolverParameter& param, const std::string& folder, int middle,
                              int workers = 1) {
  const std::string format = param.snapshot_format() == SolverParameter::HDF5 ? ".h5" : "";
  const std::string state =
      param.snapshot_prefix() + "_iter_" + std::to_string(middle) + ".solverstate" + format;
  const auto train = [&](const std::string& from) {
    SolverGroup group(param, {.keep_all = false}, workers);
    group.Solve(from);
    return group.solver(0).iter();
  };
  const int end = train("");
  const std::map<std::string, std::string> want = SnapshotsIn(folder);
  ASSERT_TRUE(std::filesystem::exists(state)) << state;
  EXPECT_GT(end, middle);
  EXPECT_EQ(train(state), end);
  const std::map<std::string, std::string> files = SnapshotsIn(folder);
  for (const auto& [name, content] : want) {
    ASSERT_TRUE(files.contains(name)) << name;
    EXPECT_TRUE(files.at(name) == content) << name << " differs after a resume";
  }
  EXPECT_EQ(files.size(), want.size());
}

}  // namespace caffe::testing
