// Tests of caffe time: its input data, its measurements and its output.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "tests/tools/run_program.hpp"

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TimeToolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("net.prototxt", R"(
      name: "classes"
      layer { name: "data" type: "DummyData" top: "data" top: "label"
        dummy_data_param { shape { dim: 4 dim: 3 dim: 8 dim: 8 } shape { dim: 4 }
          data_filler { type: "constant" value: 0.5 } } }
      layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "y"
        inner_product_param { num_output: 7 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "label" top: "loss" }
    )");
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path(name)) << text;
  }
  caffe::testing::Outcome Run(const std::string& arguments) const {
    return caffe::testing::RunProgram(folder_.path(), "caffe time net.prototxt " + arguments);
  }
  // The program's standard output as JSON.
  google::protobuf::Struct Json(const std::string& arguments) const {
    const caffe::testing::Outcome outcome = caffe::testing::RunProgram(
        folder_.path(), "caffe time net.prototxt --json " + arguments + " 2>log.txt | cat");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    google::protobuf::Struct json;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(outcome.output, &json).ok())
        << outcome.output;
    return json;
  }

  caffe::testing::TemporaryFolder folder_;
};

double Number(const google::protobuf::Struct& json, const std::string& key) {
  return json.fields().at(key).number_value();
}

TEST_F(TimeToolTest, ANetWithoutALossHasNoBackwardPass) {
  EXPECT_THAT(Run("--iterations=1").output, Not(HasSubstr("No layer is a loss")));
  Write("net.prototxt", R"(
      layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 3 } } }
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } })");
  EXPECT_THAT(Run("--iterations=1").output,
              HasSubstr("No layer is a loss, so there is nothing to compute backward; give"));
  EXPECT_THAT(Run("--iterations=1 --phase=TEST").output, Not(HasSubstr("No layer is a loss")));
}

TEST_F(TimeToolTest, ABatchOfNoiseTakesThePlaceOfTheData) {
  const google::protobuf::Struct json = Json("--batch=6 --update --iterations=12");
  EXPECT_EQ(Number(json, "batch"), 6);
  const google::protobuf::Struct& blocks = json.fields().at("pipelined").struct_value();
  EXPECT_TRUE(blocks.fields().at("updates").bool_value());
  EXPECT_GT(Number(blocks, "p10_ms"), 0);
  EXPECT_LE(Number(blocks, "p10_ms"), Number(blocks, "p50_ms"));
  EXPECT_LE(Number(blocks, "p50_ms"), Number(blocks, "p90_ms"));
  EXPECT_DOUBLE_EQ(Number(blocks, "images_per_s"), 6e3 / Number(blocks, "p50_ms"));
  EXPECT_GE(Number(blocks, "host_idle_share"), 0);
  EXPECT_LE(Number(blocks, "host_idle_share"), 1);
  EXPECT_GT(Number(json, "start_seconds"), 0);
  EXPECT_GT(Number(json, "plan_bytes"), 0);
  EXPECT_EQ(Number(json, "plans_proposed"), 0) << "cuDNN is asked on GPUs only";
  EXPECT_EQ(Number(json, "plans_built"), 0);
}

// The batch is so large that a pass takes a hundred times as long as an update.
TEST_F(TimeToolTest, AnUpdateHasItsOwnTime) {
  const google::protobuf::Struct json = Json("--batch=4000 --update --iterations=30");
  EXPECT_GT(Number(json, "update_ms"), 0);
  EXPECT_LT(Number(json, "update_ms"),
            Number(json.fields().at("pipelined").struct_value(), "p90_ms"));
  EXPECT_EQ(Json("--batch=6 --iterations=2").fields().count("update_ms"), 0u);
}

TEST_F(TimeToolTest, EachStepHasItsTimeBytesAndOperations) {
  const google::protobuf::Struct json = Json("--batch=6 --iterations=2");
  EXPECT_EQ(json.fields().count("pipelined"), 0u) << "the CPU waits for each pass";
  const google::protobuf::Struct* convolution = nullptr;
  for (const google::protobuf::Value& step : json.fields().at("steps").list_value().values()) {
    const google::protobuf::Struct& one = step.struct_value();
    EXPECT_GE(Number(one, "ms"), 0);
    if (one.fields().at("op").string_value().rfind("Conv[", 0) == 0) convolution = &one;
  }
  ASSERT_NE(convolution, nullptr);
  EXPECT_EQ(convolution->fields().at("layers").string_value(), "conv");
  EXPECT_GT(Number(*convolution, "ms"), 0);
  EXPECT_GT(Number(*convolution, "bytes"), 0);
  // 6 images, 6 x 6 positions, 4 outputs, 3 x 3 x 3 factors, one multiplication and addition each.
  EXPECT_EQ(Number(*convolution, "flops"), 6 * 36 * 4 * 27 * 2);
  EXPECT_EQ(Number(json.fields().at("captured").struct_value(), "stretches"), 0);
}

// For seven classes, chance gives ln 7 = 1.95; with labels that are all zero, or images that are
// all equal, every item would have the same loss.
TEST_F(TimeToolTest, TheNoiseHasLabelsOfAllClasses) {
  const caffe::testing::Outcome outcome = Run("--batch=64 --iterations=1");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  const size_t at = outcome.output.find("Initial loss: ");
  ASSERT_NE(at, std::string::npos);
  const double loss = std::stod(outcome.output.substr(at + 14));
  EXPECT_GT(loss, 1.2);
  EXPECT_LT(loss, 4);
}

TEST_F(TimeToolTest, UpdatesAreLoggedAndTrain) {
  EXPECT_THAT(Run("--update --iterations=3").output,
              AllOf(HasSubstr("Pass in a row with update: "), HasSubstr("Update: ")));
}

TEST_F(TimeToolTest, WhatCannotBeIsRefused) {
  EXPECT_THAT(Run("--update --phase=TEST").output,
              HasSubstr("--update needs a net that is trained; leave out --phase TEST"));
  EXPECT_NE(Run("--batch=0").status, 0);
  Write("net.prototxt", R"(layer { name: "d" type: "Data" top: "data" top: "label"
    data_param { source: "nowhere" batch_size: 4 } })");
  EXPECT_THAT(Run("--batch=2").output, HasSubstr("give"));
}

}  // namespace
