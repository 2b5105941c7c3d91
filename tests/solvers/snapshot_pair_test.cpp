// Weights and state of a snapshot belong together: no mixed or damaged pair is resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solvers/run_identity.hpp"
#include "caffe/solvers/solver_state.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;
using testing::ErrorText;
using ::testing::HasSubstr;

class SnapshotPairTest : public ::testing::TestWithParam<const char*> {
 protected:
  SolverParameter Param(int seed) const {
    SolverParameter param;
    ParseTextProto(StrCat("base_lr: 0.1 momentum: 0.9 lr_policy: 'fixed' snapshot_format: ",
                          GetParam(), R"( net_param { name: "small"
        layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 dim: 3 }
                data_filler { type: "gaussian" } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
                inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
        layer { name: "loss" type: "Reduction" bottom: "ip" top: "loss" loss_weight: 1 } })"),
                   "test", &param);
    param.set_snapshot_prefix(folder_.path("run"));
    param.set_random_seed(seed);
    return param;
  }

  // Writes a snapshot after this many iterations; returns the state's name.
  std::string Write(int seed, int iterations) const {
    Solver solver(Param(seed));
    solver.Step(iterations);
    return solver.Snapshot();
  }

  std::string File(int iteration, const std::string& kind) const {
    const bool is_hdf5 = std::string(GetParam()) == "HDF5";
    return folder_.path(StrCat("run_iter_", iteration, ".", kind, is_hdf5 ? ".h5" : ""));
  }

  static void Flip(const std::string& file, size_t at) {
    std::string bytes = ReadFile(file);
    bytes.at(at) = static_cast<char>(bytes[at] ^ 0x10);
    WriteFileAtomically(file, bytes);
  }

  testing::TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Formats, SnapshotPairTest, ::testing::Values("BINARYPROTO", "HDF5"),
                         [](const auto& info) { return std::string(info.param); });

// A kill between the two renames over an older snapshot leaves such a pair.
TEST_P(SnapshotPairTest, OfTwoRunsIsRefused) {
  Write(3, 2);
  const std::string state = Write(3, 5), old_state = ReadFile(state);
  Write(9, 5);
  WriteFileAtomically(state, old_state);
  Solver solver(Param(3));
  EXPECT_THAT(ErrorText<IoError>([&] { solver.Restore(state); }),
              HasSubstr("are not those with which this state was written"));
  EXPECT_EQ(solver.iter(), 0);
  EXPECT_EQ(NewestSnapshot(Param(3), ""), File(2, "solverstate"));
}

// Bytes that nobody reads may change: fields with default values, gaps of HDF5.
TEST_P(SnapshotPairTest, WithOneByteChangedIsRefusedOrReadAsItWas) {
  const bool is_hdf5 = std::string(GetParam()) == "HDF5";  // a process reads each such file
  for (const char* const kind : {"caffemodel", "solverstate"}) {
    const std::string state = Write(3, 2), file = File(2, kind), whole = ReadFile(file);
    const size_t step = is_hdf5 ? whole.size() / 40 : 1;
    for (size_t at = step / 2; at < whole.size(); at += step) {
      Flip(file, at);
      try {
        Solver solver(Param(3));
        solver.Restore(state);
        EXPECT_STREQ(kind, "solverstate") << at;
        solver.Snapshot();
        EXPECT_TRUE(ReadFile(file) == whole) << kind << " at " << at;
      } catch (const Error&) {
      }
      WriteFileAtomically(file, whole);
    }
  }
}

TEST_P(SnapshotPairTest, MayMoveToAnotherFolder) {
  const std::string state = Write(3, 2);
  const std::string other = folder_.path("other");
  fs::create_directory(other);
  for (const char* const kind : {"caffemodel", "solverstate"})
    fs::rename(File(2, kind), fs::path(other) / fs::path(File(2, kind)).filename());
  // Another run's weights have replaced the original ones.
  Write(9, 2);
  Solver solver(Param(3));
  solver.Restore((fs::path(other) / fs::path(state).filename()).string());
  EXPECT_EQ(solver.iter(), 2);
}

// A later iteration of a run with another seed is not the newest of this run.
TEST_P(SnapshotPairTest, OfTheSolversSeedIsPreferred) {
  Write(3, 9);
  Write(9, 4);
  EXPECT_EQ(NewestSnapshot(Param(9), ""), File(4, "solverstate"));
  EXPECT_EQ(NewestSnapshot(Param(3), ""), File(9, "solverstate"));
  EXPECT_EQ(NewestSnapshot(Param(5), ""), File(9, "solverstate"));  // better than none
  SolverParameter any = Param(3);
  any.clear_random_seed();
  EXPECT_EQ(NewestSnapshot(any, ""), File(9, "solverstate"));
}

TEST(RunIdentity, SaysWhatDiffers) {
  SolverParameter before, now;
  ParseTextProto("base_lr: 0.1 stepvalue: 3 stepvalue: 5 momentum: 0.9 max_iter: 10", "a", &before);
  ParseTextProto("base_lr: 0.2 stepvalue: 3 iter_size: 2 momentum: 0.9 max_iter: 20", "b", &now);
  EXPECT_EQ(DifferencesOf(SolverIdentity(now), SolverIdentity(before)),
            "base_lr: 0.2 (was base_lr: 0.1), iter_size: 2 (was not there), "
            "stepvalue: 3 (was stepvalue: 3 stepvalue: 5)");
  EXPECT_EQ(DifferencesOf(SolverIdentity(now), SolverIdentity(now)), "");
}

}  // namespace
}  // namespace caffe
