#include "caffe/ops/window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "caffe/core/saturating_product.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/pool.hpp"
#include "tests/support/error_text.hpp"

namespace caffe::ops {
namespace {

using ::caffe::testing::ErrorText;
using ::testing::HasSubstr;

constexpr int64_t kHuge = int64_t{1} << 32;

TEST(WindowTest, PositionsOfWindowsThatStepBeyondTheInput) {
  const Window window{.kernel = 3, .stride = 2};
  EXPECT_EQ(window.Outputs("height", 6, WindowRounding::kDown), 2);
  EXPECT_EQ(window.Outputs("height", 6, WindowRounding::kTowardZero), 2);
  EXPECT_EQ(window.Outputs("height", 6, WindowRounding::kUp), 3);
  // The input is 1 too small, which is less than a stride.
  EXPECT_THROW(window.Outputs("height", 2, WindowRounding::kDown), InvalidArgument);
  EXPECT_EQ(window.Outputs("height", 2, WindowRounding::kTowardZero), 1);
  EXPECT_EQ(window.Outputs("height", 2, WindowRounding::kUp), 1);
}

TEST(WindowTest, DilationAndPadding) {
  const Window window{.kernel = 3, .stride = 1, .pad = 2, .dilation = 4};
  EXPECT_EQ(window.Span(), 9);
  EXPECT_EQ(window.Padded("width", 5), 9);
  EXPECT_EQ(window.Outputs("width", 7, WindowRounding::kTowardZero), 3);
  EXPECT_EQ(window.TransposedOutputs("width", 3), 7);
}

TEST(WindowTest, TheLargestNumbersThatCanBeCounted) {
  const Window wide{.kernel = kMostPlaces};
  EXPECT_EQ(wide.Outputs("width", kMostPlaces, WindowRounding::kDown), 1);
  EXPECT_EQ(wide.TransposedOutputs("width", 1), kMostPlaces);
  const Window sparse{.kernel = 2, .stride = kMostPlaces, .dilation = kMostPlaces - 1};
  EXPECT_EQ(sparse.Span(), kMostPlaces);
  EXPECT_EQ(sparse.Outputs("width", kMostPlaces, WindowRounding::kUp), 1);
  const Window alone{.kernel = 1, .dilation = kMostPlaces};
  EXPECT_EQ(alone.Outputs("width", 4, WindowRounding::kUp), 4);
}

struct Refused {
  std::string name;
  Window window;
  int64_t input;
  std::string message;
  bool is_transposed = false;
};

void PrintTo(const Refused& test, std::ostream* out) {
  *out << test.name;
}

class RefusedWindowTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedWindowTest, SaysBothValues) {
  const Refused& test = GetParam();
  const std::string text = ErrorText<InvalidArgument>([&] {
    test.is_transposed ? test.window.TransposedOutputs("height", test.input)
                       : test.window.Outputs("height", test.input, WindowRounding::kUp);
  });
  EXPECT_THAT(text, HasSubstr(test.message));
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedWindowTest,
    ::testing::Values(
        Refused{"NoKernel",
                {.kernel = 0},
                8,
                "kernel_size is 0 along height; it must be in 1..2147483647"},
        Refused{"NoStride", {.stride = 0}, 8, "stride is 0 along height"},
        Refused{"NoDilation", {.dilation = 0}, 8, "dilation is 0 along height"},
        Refused{"NegativePad", {.pad = -1}, 8, "pad is -1 along height; it must be in 0.."},
        Refused{"HugeKernel", {.kernel = kHuge}, 8, "kernel_size is 4294967296 along height"},
        Refused{"HugeStride", {.stride = kHuge}, 8, "stride is 4294967296 along height"},
        Refused{"HugePad", {.pad = kHuge}, 8, "pad is 4294967296 along height"},
        Refused{"HugeDilation", {.dilation = kHuge}, 8, "dilation is 4294967296 along height"},
        Refused{"Span",
                {.kernel = 3, .pad = kMostPlaces - 1, .dilation = kMostPlaces},
                8,
                "kernel_size 3 and dilation 2147483647 span 4294967295 places along height; they "
                "may span at most 2147483647"},
        Refused{"Padded", {.pad = 1 << 30}, 8, "pad 1073741824 makes 2147483656 places of 8"},
        Refused{"Input", {}, kHuge, "the input has 4294967296 places along height"},
        Refused{"TooLarge",
                {.kernel = 50},
                28,
                "kernel spans 50 along height (kernel_size 50) but the padded input has 28; raise"},
        Refused{"TooSparse",
                {.kernel = 3, .dilation = 9},
                8,
                "kernel spans 19 along height (kernel_size 3, dilation 9) but"},
        Refused{"Transposed",
                {.stride = kMostPlaces},
                3,
                "stride 2147483647 makes 4294967295 places of 3 along height",
                true},
        Refused{"TransposedPad",
                {.kernel = 3, .pad = 2},
                2,
                "pad 2 leaves nothing of the 4 places along height",
                true},
        Refused{"TransposedNothing", {}, 0, "the input has 0 places along height", true}),
    [](const auto& info) { return info.param.name; });

TEST(ConvGeometryTest, NamesTheAxis) {
  const ConvGeometry geometry{
      .kernel = {3, 3}, .stride = {1, 1}, .pad = {0, 0}, .dilation = {1, kHuge}};
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { geometry.Check(); }),
              HasSubstr("dilation is 4294967296 along spatial axis 1"));
}

TEST(PoolGeometryTest, NamesTheAxis) {
  const PoolGeometry geometry{.kernel = {2, 2}, .stride = {1, kHuge}};
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { geometry.Check(); }),
              HasSubstr("stride is 4294967296 along width"));
}

TEST(SaturatingProductTest, StopsAtTheLargestNumber) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(SaturatingProduct({3, 4, 5}), 60);
  EXPECT_EQ(SaturatingProduct({}), 1);
  EXPECT_EQ(SaturatingProduct({kHuge, kHuge}), kMost);
  EXPECT_EQ(SaturatingProduct({kHuge, kHuge, 0}), 0);
  EXPECT_EQ(SaturatingProduct({kMost, 1}), kMost);
}

}  // namespace
}  // namespace caffe::ops
