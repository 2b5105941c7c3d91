// Kernels of convolutions of quantised data.
#include "caffe/cpu/processor.hpp"
#include "tests/conformance/int8_kernels.hpp"
#include "tests/support/fused_regions.hpp"

namespace caffe::int8_kernels {
namespace {

struct ConvCase {
  const char* name;
  std::vector<int64_t> x;
  int64_t outputs;
  ops::ConvGeometry geometry;
  bool is_fast = true;
};

const std::vector<ConvCase> kConvCases = {
    {"3x3", {2, 16, 9, 7}, 24, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}},
    {"1x1", {2, 32, 6, 5}, 16, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}},
    {"1x1Strided", {2, 16, 7, 7}, 8, {{1, 1}, {2, 2}, {0, 0}, {1, 1}, 1}},
    {"1x1Odd", {3, 31, 5, 7}, 33, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}},
    {"1x1Many", {1, 128, 5, 5}, 256, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}},
    {"1x1OfAPixel", {3, 64, 1, 1}, 1000, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}},
    {"Strided", {2, 8, 11, 10}, 8, {{5, 3}, {2, 3}, {2, 1}, {1, 1}, 1}},
    {"Groups", {2, 8, 6, 6}, 12, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 2}},
    {"Depthwise", {2, 16, 6, 6}, 16, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 16}},
    {"DepthwiseOdd", {1, 40, 11, 8}, 40, {{2, 3}, {2, 2}, {0, 2}, {1, 1}, 40}},
    {"Dilated", {1, 6, 12, 9}, 5, {{3, 3}, {1, 1}, {2, 2}, {2, 2}, 1}},
    {"OnlyPadding", {1, 7, 2, 1}, 31, {{4, 4}, {2, 2}, {3, 3}, {2, 2}, 1}},
    {"3Channels", {2, 3, 15, 15}, 16, {{7, 7}, {2, 2}, {3, 3}, {1, 1}, 1}},
    {"1Channel", {2, 1, 12, 12}, 20, {{5, 5}, {1, 1}, {0, 0}, {1, 1}, 1}},
    {"BeyondInput", {2, 4, 2, 3}, 5, {{3, 5}, {2, 3}, {0, 0}, {1, 1}, 1}},
    {"64Channels", {1, 64, 7, 5}, 64, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}},
    {"1D", {2, 5, 17}, 6, {{4}, {2}, {1}, {1}, 1}},
    {"3D", {1, 3, 5, 6, 4}, 4, {{3, 2, 3}, {1, 2, 1}, {1, 0, 1}, {1, 1, 1}, 1}},
    {"4D",
     {1, 2, 3, 3, 3, 3},
     2,
     {{2, 2, 2, 2}, {1, 1, 1, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}, 1},
     false},
};

// The convolution computed from its definition, as values in row-major order.
Values Convolve(const ops::ConvGeometry& g, const Numbers& x, const Numbers& w, const Shape& y) {
  const int axes = g.spatial_axes();
  const int64_t per_group = x.desc.shape[1] / g.group, outputs = y[1];
  const int64_t in_pixels = x.desc.shape.count(2), out_pixels = y.count(2);
  const int64_t taps = w.desc.shape.count(2);
  Values sums(y.count());
  for (int64_t k = 0; k < outputs; ++k) {
    const int64_t row = per_group * taps;
    const Values weights = QuantisedRow(w, row, 1, k * row);
    const int64_t first = k / (outputs / g.group) * per_group;
    for (int64_t n = 0; n < y[0]; ++n) {
      for (int64_t p = 0; p < out_pixels; ++p) {
        double sum = 0;
        for (int64_t tap = 0; tap < taps; ++tap) {
          int64_t position = 0, scale = 1, out = p, in_tap = tap;
          bool is_inside = true;
          for (int i = axes - 1; i >= 0; --i) {
            const int64_t at =
                out % y[2 + i] * g.stride[i] - g.pad[i] + in_tap % g.kernel[i] * g.dilation[i];
            out /= y[2 + i], in_tap /= g.kernel[i];
            is_inside = is_inside && at >= 0 && at < x.desc.shape[2 + i];
            position += at * scale, scale *= x.desc.shape[2 + i];
          }
          if (!is_inside) continue;
          for (int64_t c = 0; c < per_group; ++c) {
            const int64_t from = (n * x.desc.shape[1] + first + c) * in_pixels + position;
            sum += x.Value(from) * weights[c * taps + tap];
          }
        }
        sums[(n * outputs + k) * out_pixels + p] = sum;
      }
    }
  }
  return sums;
}

class Int8ConvTest : public ::testing::TestWithParam<std::tuple<DeviceKind, ConvCase>> {};

TEST_P(Int8ConvTest, AgreesWithDouble) {
  const auto& [kind, test] = GetParam();
  Device* const device = testing::DeviceOrNull(kind);
  if (device == nullptr) GTEST_SKIP() << "no " << Name(kind) << " device";
  const ops::ConvGeometry& g = test.geometry;
  std::set<std::string> served;
  std::vector<int64_t> y = {test.x[0], test.outputs}, w = {test.outputs, test.x[1] / g.group};
  for (int i = 0; i < g.spatial_axes(); ++i) {
    y.push_back(g.OutputSize(i, test.x[2 + i]));
    w.push_back(g.kernel[i]);
  }
  Numbers weights = Random(Describe(w, DType::kFloat), 1);
  Numbers bias = Random(Describe({test.outputs}, DType::kFloat), 2);
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    if (test.x.size() != 4 && layout != Layout::kPlain) continue;
    for (const DType in : {DType::kUInt8, DType::kInt8}) {
      Numbers x = Random(Describe(test.x, in, 0.011F, layout), 3);
      const Values sums = Convolve(g, x, weights, Shape(y));
      for (const DType out : {DType::kUInt8, DType::kInt8, DType::kFloat}) {
        for (const EpilogueCase& epilogue : kEpilogues) {
          const float scale = Is8Bit(out) ? 0.051F : 1;
          CheckProduct(*device, StrCat(test.name, " ", Name(layout), " of ", Name(in)),
                       ops::Conv{g, {}, epilogue.epilogue}, &x, &weights, &bias, epilogue,
                       Describe(y, out, scale, layout), sums, Shape(y).count(2), &served);
        }
      }
    }
  }
  // Other cases only run in the fallback: oneDNN has no kernel for them, or a wrong one.
  const OperandDesc inputs[] = {Describe(test.x, DType::kFloat), weights.desc};
  if (test.is_fast) ExpectAllServed(*device, ops::Conv{g}, inputs, served);
}

// The result between the channels of others has the same bits as alone.
TEST_P(Int8ConvTest, WritesIntoTheChannelsOfOthers) {
  const auto& [kind, test] = GetParam();
  Device* const device = testing::DeviceOrNull(kind);
  if (device == nullptr) GTEST_SKIP() << "no " << Name(kind) << " device";
  const ops::ConvGeometry& g = test.geometry;
  if (test.x.size() != 4 || g.group != 1) GTEST_SKIP() << "images without groups alone";
  constexpr int64_t kBefore = 5, kBehind = 13;
  const std::vector<int64_t> y = {test.x[0], test.outputs, g.OutputSize(0, test.x[2]),
                                  g.OutputSize(1, test.x[3])};
  std::vector<int64_t> joined = y;
  joined[1] += kBefore + kBehind;
  Numbers w =
      Random(Describe({test.outputs, test.x[1], g.kernel[0], g.kernel[1]}, DType::kFloat), 1);
  Numbers bias = Random(Describe({test.outputs}, DType::kFloat), 2);
  std::set<std::string> served;
  for (const DType in : {DType::kUInt8, DType::kInt8}) {
    Numbers x = Random(Describe(test.x, in, 0.011F, Layout::kChannelsLast), 3);
    for (const DType out : {DType::kUInt8, DType::kInt8}) {
      Numbers whole = Random(Describe(joined, out, 0.051F, Layout::kChannelsLast), 4);
      for (const EpilogueCase& epilogue : kEpilogues) {
        if (ops::AddedOperand(epilogue.epilogue) >= 0) continue;
        const ops::Conv conv{g, {}, epilogue.epilogue};
        Numbers alone{Describe(y, out, 0.051F, Layout::kChannelsLast), {}, {}};
        for (const KernelCandidate& candidate : Candidates(kind, conv)) {
          if (!RunKernel(*device, candidate, conv, {&x, &w, &bias}, &alone, false)) break;
        }
        ops::Fused region = testing::IntoOf(conv, kBefore, Shape(y));
        region.inner[0].dtype = out;
        region.inner[0].scale = whole.desc.scale;
        const Op into = region;
        for (const KernelCandidate& candidate : Candidates(kind, into)) {
          for (const bool packs : {false, true}) {
            Numbers got{whole.desc, {}, {}};
            if (RunKernel(*device, candidate, into, {&x, &w, &bias, &whole}, &got, packs)) continue;
            served.insert(candidate.name);
            const int64_t pixels = y[2] * y[3];
            for (int64_t i = 0; i < got.desc.count(); ++i) {
              const int64_t c = i / pixels % joined[1] - kBefore, item = i / pixels / joined[1];
              const bool is_part = c >= 0 && c < test.outputs;
              const size_t at = (item * test.outputs + c) * pixels + i % pixels;
              ASSERT_EQ(got.numbers[i], is_part ? alone.numbers[at] : whole.numbers[i])
                  << candidate.name << (packs ? " packed" : "") << " of " << Name(in) << " to "
                  << Name(out) << ", " << epilogue.name << ", element " << i << ", channel " << c;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(served.empty(), kind != DeviceKind::kCpu);
}

INSTANTIATE_TEST_SUITE_P(Cases, Int8ConvTest,
                         ::testing::Combine(::testing::ValuesIn(testing::BuiltDevices()),
                                            ::testing::ValuesIn(kConvCases)),
                         [](const auto& info) {
                           return testing::TitleOf(std::get<0>(info.param)) + "_" +
                                  std::get<1>(info.param).name;
                         });

// Compares kernels of pairs with the two convolutions in sequence. An intermediate number may be
// rounded differently, which changes few of the results, and these only slightly.
void ExpectPairs(const Numbers& got, const Numbers& want, const std::string& what) {
  ASSERT_EQ(got.numbers.size(), want.numbers.size()) << what;
  size_t different = 0;
  for (size_t i = 0; i < got.numbers.size(); ++i) {
    ASSERT_NEAR(got.numbers[i], want.numbers[i], 1) << what << ", element " << i;
    different += got.numbers[i] != want.numbers[i];
  }
  EXPECT_LE(different, got.numbers.size() / 100) << what;
}

TEST_P(Int8KernelTest, PairsAgreeWithBothInTurn) {
  if (GetParam() != DeviceKind::kCpu) GTEST_SKIP() << "pairs of 8-bit numbers are the CPU's";
  const ops::ConvGeometry pointwise = {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1};
  // One image with one block of channels is shared among the threads by rows.
  for (const auto& [stride, pad, channels, items, hidden] :
       std::vector<std::array<int64_t, 5>>{{1, 1, 16, 2, 48},
                                           {2, 1, 24, 2, 48},
                                           {1, 0, 4, 2, 48},
                                           {2, 2, 64, 2, 48},
                                           {1, 1, 16, 1, 32},
                                           {2, 1, 16, 1, 16},
                                           {1, 4, 8, 1, 32}}) {
    const ops::ConvGeometry depthwise = {{3, 3}, {stride, stride}, {pad, pad}, {1, 1}, hidden};
    const int64_t rows = depthwise.OutputSize(0, 9), columns = depthwise.OutputSize(1, 31);
    Numbers w = Random(Describe({hidden, channels, 1, 1}, DType::kFloat), 1);
    Numbers bias = Random(Describe({hidden}, DType::kFloat), 2);
    Numbers second_w = Random(Describe({hidden, 1, 3, 3}, DType::kFloat), 3);
    for (const DType in : {DType::kUInt8, DType::kInt8}) {
      Numbers x = Random(Describe({items, channels, 9, 31}, in, 0.011F, Layout::kChannelsLast), 4);
      for (const DType between : {DType::kUInt8, DType::kInt8}) {
        for (const DType out : {DType::kUInt8, DType::kInt8}) {
          for (const EpilogueCase& epilogue : kEpilogues) {
            if (ops::AddedOperand(epilogue.epilogue) >= 0) continue;
            ops::Fused pair =
                testing::PairOf({pointwise, {}, epilogue.epilogue},
                                {depthwise, {}, epilogue.epilogue}, {items, hidden, 9, 31});
            pair.inner[0].dtype = between;
            pair.inner[0].scale = 0.02F;
            const Op op = pair;
            const auto run = [&](const KernelCandidate& candidate, bool packs) {
              Numbers y{Describe({items, hidden, rows, columns}, out, 0.03F, Layout::kChannelsLast),
                        {},
                        {}};
              const auto refusal =
                  Run(candidate, op, {&x, &w, &bias, &second_w, nullptr}, &y, packs);
              EXPECT_FALSE(refusal) << *refusal;
              return y;
            };
            const std::vector<KernelCandidate> candidates = Candidates(op);
            const Numbers want = run(candidates.back(), false);
            for (const KernelCandidate& candidate : candidates) {
              if (candidate.rank == KernelRank::kReference || !cpu::HasWideVectors()) continue;
              for (const bool packs : {false, true})
                ExpectPairs(
                    run(candidate, packs), want,
                    StrCat(candidate.name, " ", epilogue.name, " of ", Name(in), ", ",
                           Name(between), ", to ", Name(out), ", stride ", stride, ", pad ", pad));
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace caffe::int8_kernels
