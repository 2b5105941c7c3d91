// Requirements of nets of precision INT8.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/net.hpp"
#include "tests/support/blob_ranges.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

NetParameter Definition(Phase phase, const std::string& more = "") {
  NetParameter param = testing::ParseNet(
      "name: 'small' layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 3 "
      "} } } layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' " +
      more + " inner_product_param { num_output: 2 } }");
  param.mutable_state()->set_phase(phase);
  return param;
}

class Int8NetTest : public ::testing::Test {
 protected:
  std::string Calibration(const std::string& net) const {
    testing::WriteRanges(net, {{"x", {-1, 1}}, {"y", {-1, 1}}}, folder_.path("net.json"));
    return folder_.path("net.json");
  }
  static std::string ErrorOf(const NetParameter& param, const NetOptions& options) {
    return ErrorText<InvalidArgument>([&] { const Net net(param, options); });
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Int8NetTest, TrainingIsRefused) {
  const NetOptions options{.precision = INT8, .calibration = Calibration("small")};
  EXPECT_THAT(
      ErrorOf(Definition(TRAIN), options),
      AllOf(HasSubstr("net 'small': it has precision INT8, which is for phase TEST, and the "
                      "net's is TRAIN"),
            HasSubstr("train in FP32 or BF16, run caffe calibrate")));
  EXPECT_THAT(ErrorOf(Definition(TRAIN, "precision: INT8"), {}),
              HasSubstr("net 'small': layer 'ip' has precision INT8, which is for phase TEST"));
}

TEST_F(Int8NetTest, NeedsACalibration) {
  EXPECT_THAT(ErrorOf(Definition(TEST), {.precision = INT8}),
              AllOf(HasSubstr("net 'small': it has precision INT8, which needs the ranges"),
                    HasSubstr("caffe calibrate"), HasSubstr("--calibration FILE")));
  const NetOptions missing{.precision = INT8, .calibration = folder_.path("missing.json")};
  EXPECT_THAT(ErrorText<IoError>([&] { const Net net(Definition(TEST), missing); }),
              HasSubstr("missing.json: cannot open: No such file or directory"));
}

TEST_F(Int8NetTest, RefusesAnotherNetsCalibration) {
  const std::string file = Calibration("large");
  EXPECT_THAT(ErrorOf(Definition(TEST), {.precision = INT8, .calibration = file}),
              AllOf(HasSubstr("net 'small': calibration " + file + " was made of net 'large'"),
                    HasSubstr("run caffe calibrate on this net")));
}

// Tests the fields of the definition, and their precedence.
TEST_F(Int8NetTest, TheDefinitionMaySaySo) {
  NetParameter param = Definition(TEST);
  param.set_precision(INT8);
  EXPECT_THAT(ErrorOf(param, {}), HasSubstr("needs the ranges"));
  param.set_calibration(Calibration("small"));
  const Net net(param);
  EXPECT_EQ(net.name(), "small");
  const Net not_asked(Definition(TEST, "precision: FP32"),
                      {.precision = INT8, .calibration = folder_.path("net.json")});
  param.set_default_forward_type(FLOAT);  // a default type takes precedence, and reads no file
  param.set_calibration(folder_.path("missing.json"));
  const Net in_float(param);
}

// A net that trains may name a file that does not exist yet.
TEST_F(Int8NetTest, OnlyInt8ReadsTheFile) {
  NetParameter param = Definition(TRAIN);
  param.set_calibration(folder_.path("missing.json"));
  const Net net(param);
}

}  // namespace
}  // namespace caffe
