#include "caffe/io/layer_position.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/io/atomic_file.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using testing::TemporaryFolder;

TEST(LayerPositionTest, FindsTheLayerOfThePhase) {
  const TemporaryFolder folder;
  const std::string file = folder / "net.prototxt";
  WriteFileAtomically(file, std::string_view("name: 'net'\n"
                                             "layer { name: 'data' include { phase: TRAIN } }\n"
                                             "layer { name: 'data' include { phase: TEST } }\n"
                                             "  # a comment\n"
                                             "\tlayer { name: 'ip' }\n"));
  const std::string message = "layer 'data' (Data): wrong";
  EXPECT_EQ(PositionOfLayer(file, TRAIN, message).place, file + ":2:1");
  EXPECT_EQ(PositionOfLayer(file, TEST, message).place, file + ":3:1");
  EXPECT_EQ(PositionOfLayer(file, TEST, "layer 'ip' has 2 tops").place, file + ":5:2");
  EXPECT_EQ(PositionOfLayer(file, TEST, "layer 'none': wrong").place, "");
  EXPECT_EQ(PositionOfLayer(file, TEST, "the net has no layer 'ip'").place, "");
  EXPECT_EQ(PositionOfLayer("", TEST, message).place, "");
}

TEST(LayerPositionTest, FindsLayersOfTheOldForm) {
  const TemporaryFolder folder;
  const std::string file = folder / "net.prototxt";
  WriteFileAtomically(file, std::string_view("layers { name: 'a' }\n\n  layers { name: 'b' }"));
  EXPECT_EQ(PositionOfLayer(file, TRAIN, "layer 'b' (ReLU): wrong").place, file + ":3:3");
}

// A net is read with -lenient, but its errors come later, when reading is no longer lenient.
TEST(LayerPositionTest, PassesOverWhatLenientReadingLeavesOut) {
  const TemporaryFolder folder;
  const std::string file = folder / "net.prototxt";
  WriteFileAtomically(file, std::string_view("layer { name: 'a' strange_param { x: 1 } }\n"
                                             "layer { name: 'b' pooling_param { pool: MEDIAN } }\n"
                                             "layer { name: 'c' }"));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(PositionOfLayer(file, TRAIN, "layer 'a': wrong").place, file + ":1:1");
  EXPECT_EQ(PositionOfLayer(file, TRAIN, "layer 'c': wrong").place, file + ":3:1");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(LayerPositionTest, KeepsTheTypeOfTheError) {
  const TemporaryFolder folder;
  const std::string file = folder / "net.prototxt";
  WriteFileAtomically(file, std::string_view("layer { name: 'a' }"));
  const auto fail = [&](const char* message) {
    return ErrorText<Unsupported>(
        [&] { WithLayerPosition(file, TRAIN, [&] { throw Unsupported(message); }); });
  };
  EXPECT_EQ(fail("layer 'a': no kernel"), file + ":1:1: layer 'a': no kernel");
  EXPECT_EQ(fail("no kernel"), "no kernel");
  EXPECT_THROW(WithLayerPosition(file, TRAIN, [] { throw InternalError("layer 'a': bug"); }),
               InternalError);
}

}  // namespace
}  // namespace caffe
