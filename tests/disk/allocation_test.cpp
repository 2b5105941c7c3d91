// Every allocation of a snapshot, of a restore and of a solver that resumes fails once. Allocations
// of other threads, which read data, do not fail here; tests/smoke/test_memory_faults.py covers
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <string>

#include "caffe/data/readers/record_writer.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/solver.hpp"
#include "tests/disk/failing_malloc.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

// Allocations of this thread until one fails, including that one; 0 for never.
thread_local int64_t until_failure = 0;

}  // namespace

bool caffe::testing::Fails() {
  return until_failure != 0 && --until_failure == 0 && !IsSpared();
}

namespace caffe {
namespace {

namespace fs = std::filesystem;

constexpr char kNet[] = R"(
  name: "small"
  layer { name: "data" type: "Data" top: "data" top: "label"
    data_param { source: "DB" batch_size: 4 backend: LMDB shuffle: true } }
  layer { name: "drop" type: "Dropout" bottom: "data" top: "drop" }
  layer { name: "ip" type: "InnerProduct" bottom: "drop" top: "ip"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

// The result of an operation when one of its allocations fails.
enum class Outcome { kDone, kThrown, kNotReached };

template <typename Operation>
Outcome TryWithFailure(int64_t allocation, const Operation& operation) {
  until_failure = allocation;
  bool is_done = false;
  try {
    operation();
    is_done = true;
  } catch (const std::bad_alloc&) {
  } catch (const Error&) {
  }
  const bool is_reached = until_failure == 0;
  until_failure = 0;
  if (!is_reached) return Outcome::kNotReached;
  return is_done ? Outcome::kDone : Outcome::kThrown;
}

// The slow form lets every allocation fail, the quick one a sample of those of long operations.
int64_t Stride(int64_t quick) {
  return std::getenv("CAFFE_SLOW_TESTS") != nullptr ? 1 : quick;
}

class AllocationTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#ifndef CAFFE_OWN_MALLOC
    GTEST_SKIP() << "the sanitizer, or another C library, has its own malloc()";
#endif
    const auto writer = data::CreateRecordWriter(DataParameter::LMDB, folder_.path("db"));
    for (int i = 0; i < 10; ++i) {
      Datum datum;
      datum.set_channels(1);
      datum.set_height(2);
      datum.set_width(2);
      datum.set_data(std::string(4, static_cast<char>(20 * i)));
      datum.set_label(i % 3);
      writer->Put(std::to_string(i), datum.SerializeAsString());
    }
    writer->Finish();
    fs::create_directory(folder_.path("snapshots"));
  }

  SolverParameter Param(const std::string& more = "") const {
    std::string net = kNet;
    net.replace(net.find("DB"), 2, folder_.path("db"));
    SolverParameter param;
    ParseTextProto(StrCat("base_lr: 0.1 lr_policy: 'fixed' momentum: 0.9 random_seed: 7 display: 0 "
                          "solver_mode: CPU snapshot_format: ",
                          GetParam(), " snapshot_prefix: '", folder_.path("snapshots/run"), "' ",
                          more, " net_param {", net, "}"),
                   "test", &param);
    return param;
  }

  // Name and content of the files other than the snapshots.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_.path("snapshots"))) {
      files[entry.path().filename().string()] = ReadFile(entry.path().string());
    }
    return files;
  }

  void RemoveFiles(const std::string& start = "") const {
    for (const auto& [name, content] : Files()) {
      if (name.starts_with(start)) fs::remove(folder_.path("snapshots/" + name));
    }
  }

  // Returns the name of a solver state at iteration 2.
  std::string MakeState() const {
    Solver solver(Param());
    solver.Step(2);
    return solver.Snapshot();
  }

  // Model and state after one more step show whether the solver is in the right state.
  static std::string After(Solver* solver) {
    solver->Step(1);
    const std::string file = solver->Snapshot();
    std::string bytes = ReadFile(file);
    return bytes + ReadFile(solver->param().snapshot_prefix() + "_iter_3.caffemodel" +
                            (file.ends_with(".h5") ? ".h5" : ""));
  }

  testing::TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Formats, AllocationTest, ::testing::Values("BINARYPROTO", "HDF5"),
                         [](const auto& info) { return std::string(info.param); });

// Runs `operation` with each stride-th of its allocations failing, and calls `check` after each
// run.
template <typename Operation, typename Check>
void FailEach(const std::string& what, int64_t stride, const Operation& operation,
              const Check& check) {
  int tried = 0, thrown = 0;
  int64_t allocation = 1;
  for (;; allocation += stride) {
    const Outcome outcome = TryWithFailure(allocation, operation);
    if (outcome == Outcome::kNotReached) break;
    SCOPED_TRACE(StrCat("allocation ", allocation));
    ASSERT_NO_FATAL_FAILURE(check(outcome));
    ++tried;
    thrown += outcome == Outcome::kThrown;
  }
  std::cout << what << ": " << tried << " of its allocations failed, " << thrown << " with an error"
            << std::endl;
  EXPECT_GT(thrown, 50);
}

TEST_P(AllocationTest, ASnapshotFailsWhole) {
  Solver solver(Param()), other(Param());
  solver.Step(2);
  other.Step(2);
  solver.Snapshot();
  const auto whole = Files();
  ASSERT_EQ(whole.size(), 2);
  const auto check = [&](Outcome outcome) {
    for (const auto& [name, content] : Files()) {
      ASSERT_TRUE(whole.count(name)) << name << " is left";
      ASSERT_EQ(content, whole.at(name)) << name << " is torn";
    }
    if (outcome == Outcome::kDone) {
      ASSERT_EQ(Files().size(), 2);
    }
    solver.Snapshot();
    ASSERT_EQ(Files(), whole);
    RemoveFiles();
  };
  RemoveFiles();
  FailEach(
      StrCat("a snapshot, ", GetParam()), 1, [&] { solver.Snapshot(); }, check);
  EXPECT_EQ(After(&solver), After(&other));
}

TEST_P(AllocationTest, AfterAFailedRestoreAnotherOneSucceeds) {
  const std::string state = MakeState();
  Solver solver(Param()), other(Param());
  other.Restore(state);
  const std::string expected = After(&other);
  const auto check = [&](Outcome outcome) {
    if (outcome == Outcome::kThrown) solver.Restore(state);
    ASSERT_EQ(After(&solver), expected);
  };
  FailEach(
      StrCat("a restore, ", GetParam()), Stride(11), [&] { solver.Restore(state); }, check);
}

TEST_P(AllocationTest, AResumedSolverIsMadeOrNot) {
  const std::string state = MakeState();
  std::unique_ptr<Solver> solver;
  const auto resume = [&] {
    solver = std::make_unique<Solver>(Param());
    solver->Restore(state);
  };
  resume();
  const std::string expected = After(solver.get());
  const auto check = [&](Outcome outcome) {
    if (outcome == Outcome::kDone) {
      ASSERT_EQ(After(solver.get()), expected);
    }
    solver.reset();
  };
  FailEach(StrCat("a resumed solver, ", GetParam()), Stride(23), resume, check);
}

TEST_P(AllocationTest, TrainingGoesOnAfterASnapshotWithoutMemory) {
  Solver solver(Param("snapshot: 1"));
  int64_t next = 0;
  solver.SetActionFunction([&] {  // called just before the snapshot
    until_failure = next;
    return SolverAction::NONE;
  });
  bool is_reached = true;
  for (int64_t allocation = 1; is_reached; allocation += 7) {
    next = allocation;
    ASSERT_NO_THROW(solver.Step(1)) << "allocation " << allocation;
    is_reached = until_failure == 0;
    until_failure = 0;
    RemoveFiles();
  }
  EXPECT_GT(solver.iter(), 10);
}

// A stream swallows std::bad_alloc: a message, a name or a path was once cut short.
TEST(MessageWithoutMemoryTest, IsNotCutShort) {
#ifndef CAFFE_OWN_MALLOC
  GTEST_SKIP() << "the sanitizer, or another C library, has its own malloc()";
#endif
  const std::string part(600, 'x');
  std::string text;
  int failed = 0;
  int64_t allocation = 1;
  while (true) {
    const Outcome outcome =
        TryWithFailure(allocation++, [&] { text = StrCat(part, 1.5, part, 7, part); });
    if (outcome == Outcome::kNotReached) break;
    EXPECT_EQ(outcome, Outcome::kThrown);
    ++failed;
  }
  EXPECT_GT(failed, 2);
  EXPECT_EQ(text.size(), 3 * part.size() + 4);
}

}  // namespace
}  // namespace caffe
