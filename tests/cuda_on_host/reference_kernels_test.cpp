// Kernels that are used as a last resort.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <typeindex>

#include "caffe/common.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {
namespace {

constexpr const char* kTwoConvolutions = R"pb(
  layer {
    name: "data"
    type: "Input"
    top: "data"
    input_param { shape { dim: 2 dim: 32 dim: 8 dim: 8 } }
  }
  layer {
    name: "first"
    type: "Convolution"
    bottom: "data"
    top: "first"
    convolution_param { num_output: 32 kernel_size: 3 }
  }
  layer {
    name: "second"
    type: "Convolution"
    bottom: "first"
    top: "second"
    convolution_param { num_output: 32 kernel_size: 3 }
  }
)pb";

// Runs in a separate process, because registrations are permanent.
TEST(CudaReferenceKernelsDeathTest, ConvolutionsThatNoLibraryTakesAreToldOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto refused = [](bool is_told) {
    if (is_told) {
      const auto refuse = [](const KernelRequest&) -> KernelOrRefusal {
        return Refusal{"no engine"};
      };
      KernelRegistry::Get().Register(DeviceKind::kCuda, typeid(ops::Conv), "Conv",
                                     {"conv-lib", KernelRank::kBest, {EverySignature()}, refuse});
    }
    Caffe::set_mode(Caffe::GPU);
    NetParameter param;
    ParseTextProto(kTwoConvolutions, "net", &param);
    const Net net(param, {.keep_all = false});
    std::_Exit(0);
  };
  using ::testing::ContainsRegex;
  using ::testing::Not;
  EXPECT_EXIT(
      refused(true), ::testing::ExitedWithCode(0),
      ::testing::AllOf(ContainsRegex("first.*Conv is computed by its definition, which is slow: "
                                     "conv-lib: no engine"),
                       Not(ContainsRegex("second.*by its definition"))));
  EXPECT_EXIT(refused(false), ::testing::ExitedWithCode(0), Not(ContainsRegex("definition")));
}

}  // namespace
}  // namespace caffe::cuda
