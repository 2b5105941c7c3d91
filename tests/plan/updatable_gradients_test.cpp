// Tests after which backward step a parameter may change.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/plan/program.hpp"

namespace caffe {
namespace {

// Two layers share their weights, and a third one is between them.
constexpr char kSharing[] = R"(
  layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 dim: 6 } } }
  layer { name: "low" type: "InnerProduct" bottom: "x" top: "a"
    inner_product_param { num_output: 6 } }
  layer { name: "one" type: "InnerProduct" bottom: "a" top: "b" param { name: "w" }
    inner_product_param { num_output: 6 bias_term: false } }
  layer { name: "two" type: "InnerProduct" bottom: "b" top: "c" param { name: "w" }
    inner_product_param { num_output: 6 bias_term: false } }
  layer { name: "loss" type: "Reduction" bottom: "c" top: "loss" loss_weight: 1 }
)";

Program ProgramOf(const std::string& text) {
  NetParameter param;
  ParseTextProto(text, "test", &param);
  param.mutable_state()->set_phase(TRAIN);
  const Net net(param, {.keep_all = false});
  return Assemble(net.graph());
}

// By the gradient's name: the steps after which it is final, and may be used for an update.
struct Steps {
  size_t final = 0, updatable = 0;
};
std::map<std::string, Steps> StepsOf(const Program& program) {
  std::map<std::string, Steps> steps;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    for (const int gradient : program.steps[i].final_gradients)
      steps[program.tensors[gradient].name].final = i;
    for (const int gradient : program.steps[i].updatable_gradients)
      steps[program.tensors[gradient].name].updatable = i;
  }
  return steps;
}

bool Reads(const Program::Step& step, const Program& program, const std::string& tensor) {
  return std::any_of(step.inputs.begin(), step.inputs.end(), [&](int input) {
    return input >= 0 && program.tensors[input].name == tensor;
  });
}

TEST(UpdatableGradients, AreThoseWhoseWeightsNoLaterStepReads) {
  const Program program = ProgramOf(kSharing);
  const std::map<std::string, Steps> steps = StepsOf(program);
  ASSERT_EQ(steps.size(), 3u) << "low's two, and the weights that are shared";
  for (const auto& [name, at] : steps) {
    SCOPED_TRACE(name);
    EXPECT_GE(at.updatable, at.final);
    const std::string weights = name.substr(0, name.find(".diff"));
    for (size_t i = at.updatable + 1; i < program.steps.size(); ++i)
      EXPECT_FALSE(Reads(program.steps[i], program, weights)) << "step " << i;
  }
  const Steps shared = steps.at("one.0.diff");
  size_t last_reader = 0;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const bool reads =
        Reads(program.steps[i], program, "one.0") || Reads(program.steps[i], program, "two.0");
    if (reads && program.steps[i].direction == Direction::kBackward) last_reader = i;
  }
  EXPECT_EQ(shared.updatable, std::max(shared.final, last_reader));
  EXPECT_LT(steps.at("one.0.diff").final, steps.at("low.0.diff").final);
}

// Only forward reads the bias, and in 16 bits backward reads copies.
TEST(UpdatableGradients, AreAtOnceThoseOfWeightsThatBackwardDoesNotRead) {
  const std::map<std::string, Steps> steps = StepsOf(ProgramOf(kSharing));
  EXPECT_EQ(steps.at("low.1.diff").updatable, steps.at("low.1.diff").final);
  const std::map<std::string, Steps> in_16_bits = StepsOf(ProgramOf(
      StrCat("default_forward_type: BFLOAT16 default_backward_type: BFLOAT16 ", kSharing)));
  EXPECT_EQ(in_16_bits.at("one.0.diff").updatable, in_16_bits.at("one.0.diff").final);
}

}  // namespace
}  // namespace caffe
