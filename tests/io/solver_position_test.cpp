#include "caffe/io/solver_position.hpp"

#include <gtest/gtest.h>

#include "caffe/io/atomic_file.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using testing::TemporaryFolder;

TEST(SolverPositionTest, FindsTheFirstFieldThatTheFileSets) {
  const TemporaryFolder folder;
  const std::string file = folder / "solver.prototxt";
  WriteFileAtomically(file, std::string_view("net: 'net.prototxt'\n"
                                             "\tlr_policy: 'polynomial' # none\n"
                                             "stepvalue: 7 stepvalue: 3\n"));
  EXPECT_EQ(PositionOfSolverField(file, "solver: unknown lr_policy 'polynomial'").place,
            file + ":2:2");
  EXPECT_EQ(PositionOfSolverField(file, "solver: no stepvalue after 7").place, file + ":3:1");
  EXPECT_EQ(PositionOfSolverField(file, "solver: gamma is 0; see lr_policy").place, file + ":2:2");
  EXPECT_EQ(PositionOfSolverField(file, "solver: base_lr is not set").place, file);
  EXPECT_EQ(PositionOfSolverField(file, "layer 'net': wrong").place, "");
  EXPECT_EQ(PositionOfSolverField("", "solver: base_lr is not set").place, "");
  EXPECT_EQ(PositionOfSolverField(folder / "none", "solver: base_lr is not set").place, "");
}

TEST(SolverPositionTest, KeepsTheTypeOfTheError) {
  const TemporaryFolder folder;
  const std::string file = folder / "solver.prototxt";
  WriteFileAtomically(file, std::string_view("  snapshot_prefix: 'x'"));
  EXPECT_EQ(ErrorText<IoError>([&] {
              WithSolverPosition(file, [] { throw IoError("solver: snapshot_prefix 'x': full"); });
            }),
            file + ":1:3: solver: snapshot_prefix 'x': full");
}

}  // namespace
}  // namespace caffe
