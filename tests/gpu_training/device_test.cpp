// All tests of this folder need a GPU, or the emulated one.
#include "caffe/device/device.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "caffe/error.hpp"

namespace caffe {
namespace {

std::optional<std::string> WhyThereIsNoGpu() {
  try {
    MakeDevice(DeviceKind::kCuda);
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

// If there is no GPU, skips each test with the reason. If an environment skipped, the tests would
// be reported as passed.
class NeedsGpu : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo&) override {
    static const std::optional<std::string> problem = WhyThereIsNoGpu();
    if (problem) GTEST_SKIP() << *problem;
  }
};

[[maybe_unused]] const bool is_listening = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new NeedsGpu);
  return true;
}();

}  // namespace
}  // namespace caffe
