// Kernels that take long to make are first requested by several threads.
#include "caffe/ops/plan_ahead.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/conv.hpp"

namespace caffe {
namespace {

constexpr const char* kConvolutions = R"pb(
  layer {
    name: "x"
    type: "Input"
    top: "x"
    input_param { shape { dim: 1 dim: 3 dim: 9 dim: 9 } }
  }
  layer {
    name: "a"
    type: "Convolution"
    bottom: "x"
    top: "a"
    convolution_param { num_output: 2 kernel_size: 3 }
  }
  layer {
    name: "b"
    type: "Convolution"
    bottom: "a"
    top: "b"
    convolution_param { num_output: 4 kernel_size: 3 }
  }
)pb";

class PlanAheadTest : public ::testing::Test {
 protected:
  // Registers `factory` for requesting the CPU's first kernel of float convolutions in advance.
  static void Register(const KernelFactory& factory) {
    AheadFactories::Get().Register(DeviceKind::kCpu, typeid(ops::Conv), First().name, factory);
  }
  static const KernelFactory* Find() {
    return AheadFactories::Get().Find(DeviceKind::kCpu, typeid(ops::Conv), First());
  }
  void TearDown() override { Register(nullptr); }
  static const KernelCandidate& First() {
    for (const KernelCandidate& candidate :
         KernelRegistry::Get().Candidates(DeviceKind::kCpu, typeid(ops::Conv))) {
      if (candidate.Serves(Op(ops::Conv{}), {DType::kFloat, DType::kFloat})) return candidate;
    }
    throw InternalError("no kernel of float convolutions");
  }
  static std::unique_ptr<Net> MakeNet() {
    NetParameter param;
    ParseTextProto(kConvolutions, "net", &param);
    param.mutable_state()->set_phase(TEST);
    return std::make_unique<Net>(param, NetOptions{.keep_all = false, .with_backward = false});
  }
};

TEST_F(PlanAheadTest, EachStepIsAskedForByAnotherThread) {
  const std::thread::id main = std::this_thread::get_id();
  std::mutex mutex;
  std::vector<Shape> outputs;
  Register([&](const KernelRequest& request) -> KernelOrRefusal {
    const std::lock_guard lock(mutex);
    outputs.push_back(request.outputs[0].shape);
    EXPECT_NE(std::this_thread::get_id(), main);
    return Refusal{"asked ahead"};
  });
  MakeNet();
  EXPECT_THAT(outputs, ::testing::UnorderedElementsAre(Shape({1, 2, 7, 7}), Shape({1, 4, 5, 5})));
}

TEST_F(PlanAheadTest, WhatIsTakenBackIsNotAsked) {
  Register([](const KernelRequest&) -> KernelOrRefusal { return Refusal{"asked ahead"}; });
  EXPECT_NE(Find(), nullptr);
  Register(nullptr);
  EXPECT_EQ(Find(), nullptr);
}

TEST_F(PlanAheadTest, ItsErrorsDoNotCount) {
  Register([](const KernelRequest&) -> KernelOrRefusal { throw DeviceError("ahead"); });
  EXPECT_NO_THROW(MakeNet());
}

}  // namespace
}  // namespace caffe
