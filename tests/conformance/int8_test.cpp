// Compares kernels of quantised data with the same arithmetic in double: weights quantised for each
// channel, integer sums, scales, the epilogue, and one rounding at the end.
#include <gtest/gtest.h>

#include <cmath>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "caffe/core/philox.hpp"
#include "caffe/cpu/processor.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/pool.hpp"
#include "tests/support/fused_regions.hpp"
#include "tests/support/op_case.hpp"

namespace caffe {
namespace {

using Kind = ops::Pointwise::Kind;
using Values = std::vector<double>;

constexpr Signature kOf8Bits = {DType::kInt8, DType::kFloat};

// A tensor with a type, scale and layout, and its numbers in row-major order.
struct Numbers {
  OperandDesc desc;
  Values numbers;
  std::vector<char> memory;

  double Value(size_t i) const { return numbers[i] * static_cast<double>(desc.scale); }
  TensorView View() {
    TensorView view;
    static_cast<TensorDesc&>(view) = desc;
    view.data = memory.data();
    return view;
  }
  void Store() {
    memory.resize(desc.bytes());
    TensorDesc plain{desc.shape, DType::kDouble};
    CopyTensor({plain, numbers.data()}, View());
  }
  void Load() {
    numbers.resize(desc.count());
    TensorDesc plain{desc.shape, DType::kDouble};
    CopyTensor(View(), {plain, numbers.data()});
  }
};

OperandDesc Describe(std::vector<int64_t> dims, DType dtype, float scale = 1,
                     Layout layout = Layout::kPlain) {
  OperandDesc desc;
  desc.shape = Shape(std::move(dims));
  desc.dtype = dtype;
  desc.layout = desc.shape.num_axes() == 4 ? layout : Layout::kPlain;
  desc.scale = scale;
  return desc;
}

Numbers Random(OperandDesc desc, uint64_t stream) {
  Numbers tensor{std::move(desc), {}, {}};
  const RandomStream random(7, stream);
  for (int64_t i = 0; i < tensor.desc.count(); ++i) {
    const double uniform = static_cast<double>(ToUniform(random.Bits(i)));
    switch (tensor.desc.dtype) {
      case DType::kUInt8:
        tensor.numbers.push_back(std::floor(uniform * 256));
        break;
      case DType::kInt8:
        tensor.numbers.push_back(std::floor(uniform * 256) - 128);
        break;
      default:
        tensor.numbers.push_back(static_cast<double>(static_cast<float>(2 * uniform - 1)));
    }
  }
  tensor.Store();
  return tensor;
}

double Clipped(double number, DType dtype) {
  if (dtype == DType::kUInt8) return std::clamp(number, 0.0, 255.0);
  if (dtype == DType::kInt8) return std::clamp(number, -128.0, 127.0);
  return number;
}

// `want` holds exact values. A number is right if it is the nearest one, allowing for float errors
// before the rounding.
void ExpectNumbers(const std::string& what, const Numbers& got, const Values& want) {
  ASSERT_EQ(got.numbers.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    const double exact = want[i] / static_cast<double>(got.desc.scale);
    const double limit = 4e-6 * (std::abs(exact) + 20);
    const bool is_float = !Is8Bit(got.desc.dtype);
    ASSERT_NEAR(got.numbers[i], Clipped(exact, got.desc.dtype), (is_float ? 0 : 0.5) + limit)
        << what << ", element " << i;
  }
}

// The kernels of a device that support quantised data.
std::vector<KernelCandidate> Candidates(DeviceKind device, const Op& op) {
  std::vector<KernelCandidate> serving;
  for (const KernelCandidate& one : KernelRegistry::Get().Candidates(device, op.type())) {
    if (one.Serves(kOf8Bits) && one.IsFor(op)) serving.push_back(one);
  }
  return serving;
}

// Memory of a device.
class Buffer {
 public:
  Buffer(Device& device, const std::vector<char>& bytes)
      : device_(device), bytes_(bytes.size()), memory_(device.Allocate(bytes_)) {
    device.CopyFromHost(memory_.get(), bytes.data(), bytes_);
  }
  TensorView View(const TensorDesc& desc) const {
    TensorView view;
    static_cast<TensorDesc&>(view) = desc;
    view.data = memory_.get();
    return view;
  }
  void* data() const { return memory_.get(); }
  void Read(std::vector<char>* bytes) const {
    bytes->resize(bytes_);
    device_.CopyToHost(bytes->data(), memory_.get(), bytes_);
  }

 private:
  Device& device_;
  size_t bytes_;
  std::shared_ptr<void> memory_;
};

std::vector<char> Noise(size_t bytes) {
  return std::vector<char>(bytes, 0x7f);
}

// Runs a kernel; with `packs` its weights are packed in a step before it, as plans do. Returns the
// refusal if the kernel does not support the request.
std::optional<std::string> RunKernel(Device& device, const KernelCandidate& candidate, const Op& op,
                                     std::vector<Numbers*> inputs, Numbers* output, bool packs) {
  std::vector<OperandDesc> in, out = {output->desc};
  for (Numbers* input : inputs) {
    in.push_back(input == nullptr ? OperandDesc() : input->desc);
    in.back().present = input != nullptr;
    in.back().may_be_packed = packs;
  }
  KernelOrRefusal answer = candidate.factory({op, in, out, device, {}});
  if (const auto* refusal = std::get_if<Refusal>(&answer)) return refusal->reason;
  const Kernel& kernel = std::get<Kernel>(answer);
  std::list<Buffer> memory;
  std::vector<TensorView> in_views;
  for (Numbers* input : inputs) {
    in_views.push_back(input == nullptr
                           ? TensorView()
                           : memory.emplace_back(device, input->memory).View(input->desc));
  }
  KernelContext context;
  context.stream = &device.compute_stream();
  if (kernel.packed_weights) {
    const PackedOperand& packed = *kernel.packed_weights;
    const TensorDesc bytes{Shape{static_cast<int64_t>(packed.bytes)}, DType::kUInt8};
    const TensorView result = memory.emplace_back(device, Noise(packed.bytes)).View(bytes);
    TensorView& weights = in_views[packed.operand];
    context.inputs = {&weights, 1};
    context.outputs = {&result, 1};
    context.workspace = memory.emplace_back(device, Noise(packed.workspace_bytes)).data();
    packed.convert(context);
    weights = result;
  }
  const Buffer result(device, std::vector<char>(output->desc.bytes(), 0x55));
  const TensorView out_view = result.View(output->desc);
  context.inputs = in_views;
  context.outputs = {&out_view, 1};
  context.workspace = memory.emplace_back(device, Noise(kernel.workspace_bytes)).data();
  for (int run = 0; run < 2; ++run) kernel.run(context);
  context.stream->Synchronize();
  result.Read(&output->memory);
  output->Load();
  return std::nullopt;
}

// Runs on each device that this build has kernels for.
class Int8KernelTest : public ::testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    device_ = testing::DeviceOrNull(GetParam());
    if (device_ == nullptr) GTEST_SKIP() << "no " << Name(GetParam()) << " device";
  }
  std::vector<KernelCandidate> Candidates(const Op& op) const {
    return caffe::Candidates(GetParam(), op);
  }
  std::optional<std::string> Run(const KernelCandidate& candidate, const Op& op,
                                 std::vector<Numbers*> inputs, Numbers* output,
                                 bool packs = false) const {
    return RunKernel(*device_, candidate, op, std::move(inputs), output, packs);
  }
  void CheckConversion(const Op& op, const OperandDesc& from, const OperandDesc& to) const;

  Device* device_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Devices, Int8KernelTest, ::testing::ValuesIn(testing::BuiltDevices()),
                         [](const auto& info) { return testing::TitleOf(info.param); });

// Quantised weights of channel k, as values: the largest is 127 steps.
Values QuantisedRow(const Numbers& w, int64_t row, int64_t stride, int64_t first) {
  float largest = 0;
  const auto at = [&](int64_t i) { return static_cast<float>(w.numbers[first + i * stride]); };
  for (int64_t i = 0; i < row; ++i) largest = std::max(largest, std::abs(at(i)));
  const float scale = largest / 127;
  Values values;
  for (int64_t i = 0; i < row; ++i)
    values.push_back(std::nearbyint(at(i) / scale) * static_cast<double>(scale));
  return values;
}

double ApplyInDouble(const ops::Epilogue& epilogue, double value, double added) {
  for (const ops::Pointwise& entry : epilogue)
    value = entry.kind == Kind::kAdd ? value + added : ops::ApplyPointwise(entry, value);
  return value;
}

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

struct EpilogueCase {
  const char* name;
  ops::Epilogue epilogue;
  DType added = DType::kUInt8;  // type of the added term
};

const std::vector<EpilogueCase> kEpilogues = {
    {"plain", {}},
    {"relu", {{Kind::kRelu}}},
    {"leaky relu", {{Kind::kRelu, 0.25F}}},
    {"clip", {{Kind::kClip, 0, 6}}},
    {"add", {{Kind::kAdd, 0, 0, 3}}},
    {"add int8, relu", {{Kind::kAdd, 0, 0, 3}, {Kind::kRelu}}, DType::kInt8},
    {"add float, relu", {{Kind::kAdd, 0, 0, 3}, {Kind::kRelu}}, DType::kFloat},
    {"add, clip", {{Kind::kAdd, 0, 0, 3}, {Kind::kClip, 0, 6}}},
};

void CheckProduct(Device& device, const std::string& what, const Op& op, Numbers* x, Numbers* w,
                  Numbers* bias, const EpilogueCase& epilogue, OperandDesc y, const Values& sums,
                  int64_t pixels, std::set<std::string>* served) {
  OperandDesc added_desc = y;
  added_desc.dtype = epilogue.added;
  added_desc.scale = Is8Bit(epilogue.added) ? 0.037F : 1;
  Numbers added = Random(added_desc, 4);
  Values want(sums.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const size_t channel = i / pixels % static_cast<size_t>(bias->desc.count());
    want[i] = ApplyInDouble(epilogue.epilogue, sums[i] + bias->numbers[channel], added.Value(i));
  }
  const bool adds = ops::AddedOperand(epilogue.epilogue) >= 0;
  for (const KernelCandidate& candidate : Candidates(device.kind(), op)) {
    for (const bool packs : {false, true}) {
      if (packs && candidate.rank == KernelRank::kReference) continue;  // references never pack
      Numbers got{y, {}, {}};
      const auto refusal =
          RunKernel(device, candidate, op, {x, w, bias, adds ? &added : nullptr}, &got, packs);
      if (refusal) {
        EXPECT_NE(candidate.rank, KernelRank::kReference) << what << ": " << *refusal;
        continue;
      }
      served->insert(candidate.name);
      ExpectNumbers(StrCat(what, ", ", epilogue.name, ", ", candidate.name, packs ? " packed" : "",
                           ", to ", Name(y.dtype)),
                    got, want);
    }
  }
}

// Expects one kernel of each rank to be used, because some support only certain shapes. `inputs`:
// the op's inputs, which why_not() gets.
void ExpectAllServed(const Device& device, const Op& op, std::span<const OperandDesc> inputs,
                     const std::set<std::string>& served) {
  const auto* conv = op.As<ops::Conv>();
  const bool is_of_images = conv == nullptr || conv->geometry.spatial_axes() == 2;
  std::map<KernelRank, bool> serves;
  for (const KernelCandidate& candidate : Candidates(device.kind(), op)) {
    if (candidate.rank == KernelRank::kSlow && !is_of_images) continue;
    const auto why_not = candidate.traits.why_not;
    if (why_not != nullptr && !why_not(op, inputs, device).empty()) continue;
    serves[candidate.rank] |= served.count(candidate.name) == 1;
  }
  for (const auto& [rank, does] : serves)
    EXPECT_TRUE(does) << "all kernels of rank " << static_cast<int>(rank) << " refused";
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
  for (const auto& [stride, pad, channels] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 16}, {2, 1, 24}, {1, 0, 4}, {2, 2, 64}}) {
    const ops::ConvGeometry depthwise = {{3, 3}, {stride, stride}, {pad, pad}, {1, 1}, 48};
    const int64_t rows = depthwise.OutputSize(0, 9), columns = depthwise.OutputSize(1, 31);
    Numbers w = Random(Describe({48, channels, 1, 1}, DType::kFloat), 1);
    Numbers bias = Random(Describe({48}, DType::kFloat), 2);
    Numbers second_w = Random(Describe({48, 1, 3, 3}, DType::kFloat), 3);
    for (const DType in : {DType::kUInt8, DType::kInt8}) {
      Numbers x = Random(Describe({2, channels, 9, 31}, in, 0.011F, Layout::kChannelsLast), 4);
      for (const DType between : {DType::kUInt8, DType::kInt8}) {
        for (const DType out : {DType::kUInt8, DType::kInt8}) {
          for (const EpilogueCase& epilogue : kEpilogues) {
            if (ops::AddedOperand(epilogue.epilogue) >= 0) continue;
            ops::Fused pair = testing::PairOf({pointwise, {}, epilogue.epilogue},
                                              {depthwise, {}, epilogue.epilogue}, {2, 48, 9, 31});
            pair.inner[0].dtype = between;
            pair.inner[0].scale = 0.02F;
            const Op op = pair;
            const auto run = [&](const KernelCandidate& candidate, bool packs) {
              Numbers y{
                  Describe({2, 48, rows, columns}, out, 0.03F, Layout::kChannelsLast), {}, {}};
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
                ExpectPairs(run(candidate, packs), want,
                            StrCat(candidate.name, " ", epilogue.name, " of ", Name(in), ", ",
                                   Name(between), ", to ", Name(out), ", stride ", stride));
            }
          }
        }
      }
    }
  }
}

TEST_P(Int8KernelTest, ProductsAgreeWithDouble) {
  std::set<std::string> served;
  for (const auto& [rows, columns, inner] : std::vector<std::array<int64_t, 3>>{
           {1, 10, 500}, {64, 500, 800}, {3, 7, 5}, {2, 1000, 33}, {33, 1, 64}}) {
    for (const bool transpose_b : {true, false}) {
      Numbers w = Random(transpose_b ? Describe({columns, inner}, DType::kFloat)
                                     : Describe({inner, columns}, DType::kFloat),
                         1);
      Numbers bias = Random(Describe({columns}, DType::kFloat), 2);
      for (const DType in : {DType::kUInt8, DType::kInt8}) {
        Numbers x = Random(Describe({rows, inner}, in, 0.011F), 3);
        Values sums(rows * columns);
        for (int64_t k = 0; k < columns; ++k) {
          const Values weights = transpose_b ? QuantisedRow(w, inner, 1, k * inner)
                                             : QuantisedRow(w, inner, columns, k);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t i = 0; i < inner; ++i)
              sums[r * columns + k] += x.Value(r * inner + i) * weights[i];
          }
        }
        for (const DType out : {DType::kUInt8, DType::kInt8, DType::kFloat}) {
          for (const EpilogueCase& epilogue : kEpilogues) {
            CheckProduct(*device_, StrCat(rows, "x", inner, "x", columns, " of ", Name(in)),
                         ops::Gemm{.rows = rows,
                                   .columns = columns,
                                   .inner = inner,
                                   .transpose_b = transpose_b,
                                   .epilogue = epilogue.epilogue},
                         &x, &w, &bias, epilogue,
                         Describe({rows, columns}, out, Is8Bit(out) ? 0.13F : 1), sums, 1, &served);
          }
        }
      }
    }
  }
  ExpectAllServed(*device_, ops::Gemm{}, {}, served);
}

// Weights that are zero, tiny and large, and a bias far larger than the products.
TEST_P(Int8KernelTest, ProductsHoldExtremeChannels) {
  Numbers w = Random(Describe({4, 8}, DType::kFloat), 1);
  const double factors[] = {0, 1e-38, 1, 1e6};
  for (int64_t i = 0; i < 32; ++i) w.numbers[i] *= factors[i / 8];
  w.Store();
  Numbers bias{Describe({4}, DType::kFloat), {100, -1e4, 1e-6, 0}, {}};
  bias.Store();
  const Op op = ops::Gemm{.rows = 2, .columns = 4, .inner = 8, .transpose_b = true};
  for (const DType type : {DType::kUInt8, DType::kInt8}) {
    Numbers x = Random(Describe({2, 8}, type, 1e-6F), 3);
    for (const KernelCandidate& candidate : Candidates(op)) {
      Numbers y{Describe({2, 4}, DType::kFloat), {}, {}};
      if (Run(candidate, op, {&x, &w, &bias}, &y, true)) continue;
      for (const int64_t row : {0, 1}) {
        EXPECT_NEAR(y.numbers[row * 4], 100, 1e-4) << candidate.name;
        EXPECT_NEAR(y.numbers[row * 4 + 1], -1e4, 1e-2) << candidate.name;
        EXPECT_TRUE(std::isfinite(y.numbers[row * 4 + 2])) << candidate.name;
        EXPECT_TRUE(std::isfinite(y.numbers[row * 4 + 3])) << candidate.name;
      }
    }
  }
}

const std::vector<ops::PoolGeometry> kPools = {
    {{3, 3}, {2, 2}, {0, 0}}, {{2, 3}, {1, 2}, {1, 1}}, {{7, 6}, {1, 1}, {0, 0}}};

Values Pool(const ops::PoolGeometry& g, const Numbers& x, const Shape& y, bool is_max) {
  Values want(y.count());
  const int64_t height = x.desc.shape[2], width = x.desc.shape[3];
  for (int64_t i = 0; i < y.count(); ++i) {
    const ops::PoolWindow rows = ops::WindowAt(g, 0, height, i / y[3] % y[2]);
    const ops::PoolWindow columns = ops::WindowAt(g, 1, width, i % y[3]);
    double sum = 0, best = -1e30;
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const double value = x.Value((i / y.count(2) * height + h) * width + w);
        sum += value, best = std::max(best, value);
      }
    }
    want[i] = is_max ? best : sum / static_cast<double>(rows.size * columns.size);
  }
  return want;
}

TEST_P(Int8KernelTest, PoolingAgreesWithDouble) {
  for (const ops::PoolGeometry& g : kPools) {
    for (const int64_t channels : {3, 64, 600}) {
      for (const DType in : {DType::kUInt8, DType::kInt8}) {
        const OperandDesc desc = Describe({2, channels, 7, 6}, in, 0.02F, Layout::kChannelsLast);
        Numbers x = Random(desc, 3);
        const Shape shape{2, channels, g.OutputSize(0, 7), g.OutputSize(1, 6)};
        OperandDesc same = desc;
        same.shape = shape;
        Numbers largest{same, {}, {}};
        const Op max = ops::MaxPool{g};
        ASSERT_EQ(Candidates(max).size(), 1u);
        ASSERT_EQ(Run(Candidates(max)[0], max, {&x}, &largest), std::nullopt);
        ExpectNumbers("max", largest, Pool(g, x, shape, true));
        const Op average = ops::AvePool{g};
        for (const DType out : {DType::kUInt8, DType::kInt8, DType::kFloat}) {
          Numbers mean{
              Describe(shape.dims(), out, Is8Bit(out) ? 0.015F : 1, Layout::kChannelsLast), {}, {}};
          ASSERT_EQ(Run(Candidates(average)[0], average, {&x}, &mean), std::nullopt);
          ExpectNumbers("average", mean, Pool(g, x, shape, false));
        }
      }
    }
  }
}

TEST_P(Int8KernelTest, SumsAgreeWithDouble) {
  Numbers a = Random(Describe({2, 5, 17, 9}, DType::kUInt8, 0.02F), 1);
  Numbers b = Random(Describe({2, 5, 17, 9}, DType::kInt8, 0.05F), 2);
  for (const DType out : {DType::kUInt8, DType::kInt8, DType::kFloat}) {
    for (const bool has_relu : {false, true}) {
      ops::EltwiseSum sum{.coefficients = {1, -2}, .epilogue = {}};
      if (has_relu) sum.epilogue = {{Kind::kRelu}};
      Values want;
      for (size_t i = 0; i < a.numbers.size(); ++i)
        want.push_back(ApplyInDouble(sum.epilogue, a.Value(i) - 2 * b.Value(i), 0));
      Numbers y{Describe({2, 5, 17, 9}, out, Is8Bit(out) ? 0.03F : 1), {}, {}};
      ASSERT_EQ(Run(Candidates(sum)[0], sum, {&a, &b}, &y), std::nullopt);
      ExpectNumbers("sum", y, want);
    }
  }
}

// Kernels for all types also support quantised tensors.
void Int8KernelTest::CheckConversion(const Op& op, const OperandDesc& from,
                                     const OperandDesc& to) const {
  Numbers x = Random(from, 1);
  Values want;
  for (size_t i = 0; i < x.numbers.size(); ++i) want.push_back(x.Value(i));
  const auto& all = KernelRegistry::Get().Candidates(GetParam(), op.type());
  Numbers y{to, {}, {}};
  ASSERT_EQ(Run(all.back(), op, {&x}, &y), std::nullopt);
  ExpectNumbers(StrCat(Name(from.dtype), " to ", Name(to.dtype)), y, want);
}

TEST_P(Int8KernelTest, ConversionsAgreeWithDouble) {
  const std::vector<int64_t> dims = {2, 5, 37, 3};
  for (const DType from : {DType::kUInt8, DType::kInt8, DType::kFloat}) {
    for (const DType to : {DType::kUInt8, DType::kInt8, DType::kFloat}) {
      if (!Is8Bit(from) && !Is8Bit(to)) continue;
      const float in = Is8Bit(from) ? 0.01F : 1, out = Is8Bit(to) ? 0.007F : 1;
      CheckConversion(ops::Cast{}, Describe(dims, from, in), Describe(dims, to, out));
      for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
        const Layout other = layout == Layout::kPlain ? Layout::kChannelsLast : Layout::kPlain;
        CheckConversion(ops::Reorder{}, Describe(dims, from, in, layout),
                        Describe(dims, to, out, other));
      }
    }
  }
}

TEST_P(Int8KernelTest, ConversionsKeepNumbersOfOneScale) {
  const std::vector<int64_t> dims = {1, 256, 1, 1};
  Numbers x{Describe(dims, DType::kUInt8, 0.37F), {}, {}};
  for (int i = 0; i < 256; ++i) x.numbers.push_back(i);
  x.Store();
  const Op op = ops::Reorder{};
  const auto& all = KernelRegistry::Get().Candidates(GetParam(), op.type());
  Numbers y{Describe(dims, DType::kUInt8, 0.37F, Layout::kChannelsLast), {}, {}};
  ASSERT_EQ(Run(all.back(), op, {&x}, &y), std::nullopt);
  EXPECT_EQ(y.numbers, x.numbers);
}

// Bytes at unaligned addresses.
TEST_P(Int8KernelTest, ConcatenationsAndSlicesMoveBytes) {
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    Numbers a = Random(Describe({2, 3, 5, 1}, DType::kInt8, 0.1F, layout), 1);
    Numbers b = Random(Describe({2, 4, 5, 1}, DType::kInt8, 0.1F, layout), 2);
    const Op concat = ops::Concat{.axis = 1}, slice = ops::SliceOf{.axis = 1, .offset = 3};
    Numbers whole{Describe({2, 7, 5, 1}, DType::kInt8, 0.1F, layout), {}, {}}, part{b.desc, {}, {}};
    const auto last = [&](const Op& op) {
      return KernelRegistry::Get().Candidates(GetParam(), op.type()).back();
    };
    ASSERT_EQ(Run(last(concat), concat, {&a, &b}, &whole), std::nullopt);
    ASSERT_EQ(Run(last(slice), slice, {&whole}, &part), std::nullopt);
    EXPECT_EQ(part.numbers, b.numbers) << Name(layout);
    for (int64_t i = 0; i < 15; ++i) EXPECT_EQ(whole.numbers[i], a.numbers[i]) << Name(layout);
  }
}

}  // namespace
}  // namespace caffe
