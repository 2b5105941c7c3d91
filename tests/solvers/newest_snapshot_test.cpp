#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "caffe/io/text_format.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_factory.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;

class NewestSnapshotTest : public ::testing::TestWithParam<const char*> {
 protected:
  SolverParameter Param() const {
    SolverParameter param;
    ParseTextProto("base_lr: 0.1 lr_policy: 'fixed' snapshot_prefix: '" + folder_.path("run") +
                       "' snapshot_format: " + GetParam() + R"( net_param { name: "small"
                layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 } } }
                layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
                        inner_product_param { num_output: 1 axis: 0 } }
                layer { name: "loss" type: "Reduction" bottom: "ip" top: "loss" loss_weight: 1 } })",
                   "test", &param);
    return param;
  }

  // Writes snapshots of iterations 9, 10 and 100.
  void Write() const {
    Solver solver(Param());
    solver.Step(9);
    solver.Snapshot();
    solver.Step(1);
    solver.Snapshot();
    solver.Step(90);
    solver.Snapshot();
  }

  std::string File(const std::string& name) const {
    const bool is_hdf5 = std::string(GetParam()) == "HDF5";
    return folder_.path("run_iter_" + name + (is_hdf5 ? ".h5" : ""));
  }

  testing::TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Formats, NewestSnapshotTest, ::testing::Values("BINARYPROTO", "HDF5"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(NewestSnapshotTest, IsThatOfTheLatestIteration) {
  EXPECT_EQ(NewestSnapshot(Param(), ""), "");
  Write();
  // Names that do not belong to snapshots of this solver.
  for (const char* name : {"run_iter_200.txt", "run2_iter_300.solverstate",
                           "run_iter_x.solverstate", "run_iter_99999999999999999999.solverstate"}) {
    std::ofstream(folder_.path(name)) << "x";
  }
  EXPECT_EQ(NewestSnapshot(Param(), ""), File("100.solverstate"));
}

TEST_P(NewestSnapshotTest, SkipsStatesThatCannotBeUsed) {
  Write();
  fs::remove(File("100.caffemodel"));
  EXPECT_EQ(NewestSnapshot(Param(), ""), File("10.solverstate"));
  fs::resize_file(File("10.solverstate"), fs::file_size(File("10.solverstate")) / 2);
  EXPECT_EQ(NewestSnapshot(Param(), ""), File("9.solverstate"));
}

TEST_P(NewestSnapshotTest, MayBeThatOfTheBestModel) {
  Write();
  const bool is_hdf5 = std::string(GetParam()) == "HDF5";
  const std::string best =
      folder_.path(is_hdf5 ? "run_best.solverstate.h5" : "run_best.solverstate");
  fs::copy(File("10.solverstate"), best);
  EXPECT_EQ(NewestSnapshot(Param(), ""), File("100.solverstate"));
  fs::remove(File("100.solverstate"));
  EXPECT_EQ(NewestSnapshot(Param(), ""), File("10.solverstate")) << "of two of one iteration";
  fs::remove(File("10.solverstate"));
  EXPECT_EQ(NewestSnapshot(Param(), ""), best);
}

// A damaged state must not replace the intact one of the same iteration.
TEST_P(NewestSnapshotTest, LooksAtBothFormatsOfAnIteration) {
  SolverParameter other = Param();
  other.set_snapshot_format(std::string(GetParam()) == "HDF5" ? SolverParameter::BINARYPROTO
                                                              : SolverParameter::HDF5);
  std::string whole;
  for (const SolverParameter& param : {other, Param()}) {
    Solver solver(param);
    solver.Step(9);
    const std::string state = solver.Snapshot();
    if (whole.empty()) whole = state;
  }
  fs::resize_file(File("9.solverstate"), 10);
  EXPECT_EQ(NewestSnapshot(Param(), ""), whole);
}

TEST_P(NewestSnapshotTest, OfAFolderThatIsNotThere) {
  SolverParameter param = Param();
  param.set_snapshot_prefix(folder_.path("no/folder/run"));
  EXPECT_EQ(NewestSnapshot(param, ""), "");
}

}  // namespace
}  // namespace caffe
