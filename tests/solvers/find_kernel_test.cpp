#include "caffe/solvers/find_kernel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using testing::ErrorText;

// Its only kernel refuses unless bits must be equal.
struct Picky {
  static constexpr std::string_view kName = "Picky";
};

KernelOrRefusal MakePicky(const Picky&, const KernelRequest& request) {
  if (!request.settings.deterministic) return Refusal{"only where bits must be equal"};
  return Kernel{"", [](const KernelContext&) {}};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, Picky, "picky-kernel", KernelRank::kBest,
                              MakePicky);

TEST(FindKernelTest, GoesByTheNetsSettings) {
  NetParameter param;
  ParseTextProto("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 } } }",
                 "net", &param);
  Net exact(param, {.deterministic = true}), usual(param);
  EXPECT_EQ(FindKernel(Picky{}, {}, {}, exact.graph()).name, "picky-kernel");
  EXPECT_THAT(ErrorText<Unsupported>([&] { FindKernel(Picky{}, {}, {}, usual.graph()); }),
              ::testing::HasSubstr("picky-kernel: only where bits must be equal"));
}

}  // namespace
}  // namespace caffe
