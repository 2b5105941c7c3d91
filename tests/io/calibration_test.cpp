#include "caffe/io/calibration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

class CalibrationTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text) const {
    std::ofstream(folder_.path("net.json")) << text;
    return folder_.path("net.json");
  }
  std::string ErrorOf(const std::string& text) const {
    const std::string file = Write(text);
    const std::string error = ErrorText<InvalidArgument>([&] { ReadCalibration(file); });
    EXPECT_TRUE(error.starts_with(file + ": ")) << error;
    return error;
  }

  testing::TemporaryFolder folder_;
};

constexpr const char* kStart = R"({"format": "cortado calibration 1", "net": "LeNet", )";

TEST_F(CalibrationTest, ReadsWhatCaffeCalibrateWrites) {
  const std::string file = Write(std::string(kStart) +
                                 R"("method": "entropy", "images": 1000,
                                    "ranges": {"data": [0.0, 1], "conv1": [-1.5, 2.25]}})");
  const BlobRanges ranges = ReadCalibration(file);
  EXPECT_EQ(ranges.file, file);
  EXPECT_EQ(ranges.net, "LeNet");
  ASSERT_EQ(ranges.blobs.size(), 2u);
  EXPECT_EQ(ranges.blobs.at("data"), (BlobRanges::Range{0, 1}));
  EXPECT_EQ(ranges.blobs.at("conv1"), (BlobRanges::Range{-1.5F, 2.25F}));
}

TEST_F(CalibrationTest, SaysWhatIsWrong) {
  EXPECT_THAT(ErrorOf("no JSON"), HasSubstr("is not a calibration file"));
  EXPECT_THAT(ErrorOf("[1, 2]"), HasSubstr("is not a calibration file"));
  EXPECT_THAT(ErrorOf(R"({"format": "other 7"})"),
              AllOf(HasSubstr("its format is 'other 7' and should be 'cortado calibration 1'"),
                    HasSubstr("caffe calibrate")));
  EXPECT_THAT(ErrorOf(std::string(kStart) + R"("images": 3})"), HasSubstr("has no ranges"));
  EXPECT_THAT(ErrorOf(std::string(kStart) + R"("ranges": {"a": [1, 2]}})"),
              HasSubstr("the range of blob 'a' should be two numbers, with 0 between them, and is "
                        "1 to 2"));
  for (const char* range : {"[0]", "[0, 1, 2]", "3", "\"0, 1\"", "[\"0\", 1]", "[0, 1e39]", "null"})
    EXPECT_THAT(ErrorOf(StrCat(kStart, "\"ranges\": {\"a\": ", range, "}}")),
                HasSubstr("the range of blob 'a' should be two numbers"));
}

TEST_F(CalibrationTest, SaysWhichFileCannotBeRead) {
  const std::string file = folder_.path("missing.json");
  EXPECT_EQ(ErrorText<IoError>([&] { ReadCalibration(file); }),
            file + ": cannot open: No such file or directory");
  EXPECT_THAT(ErrorText<Error>([&] { ReadCalibration(folder_.path()); }),
              HasSubstr(folder_.path()));
}

}  // namespace
}  // namespace caffe
