// Compares kernels of quantised data with the same arithmetic in double: weights quantised for each
// channel, integer sums, scales, the epilogue, and one rounding at the end.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "caffe/core/philox.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "tests/support/op_case.hpp"

namespace caffe::int8_kernels {

using Kind = ops::Pointwise::Kind;
using Values = std::vector<double>;

inline constexpr Signature kOf8Bits = {DType::kInt8, DType::kFloat};

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

inline OperandDesc Describe(std::vector<int64_t> dims, DType dtype, float scale = 1,
                            Layout layout = Layout::kPlain) {
  OperandDesc desc;
  desc.shape = Shape(std::move(dims));
  desc.dtype = dtype;
  desc.layout = desc.shape.num_axes() == 4 ? layout : Layout::kPlain;
  desc.scale = scale;
  return desc;
}

inline Numbers Random(OperandDesc desc, uint64_t stream) {
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

inline double Clipped(double number, DType dtype) {
  if (dtype == DType::kUInt8) return std::clamp(number, 0.0, 255.0);
  if (dtype == DType::kInt8) return std::clamp(number, -128.0, 127.0);
  return number;
}

// `want` holds exact values. A number is right if it is the nearest one, allowing for float errors
// before the rounding.
inline void ExpectNumbers(const std::string& what, const Numbers& got, const Values& want) {
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
inline std::vector<KernelCandidate> Candidates(DeviceKind device, const Op& op) {
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

inline std::vector<char> Noise(size_t bytes) {
  return std::vector<char>(bytes, 0x7f);
}

// Runs a kernel; with `packs` its weights are packed in a step before it, as plans do. Returns the
// refusal if the kernel does not support the request.
inline std::optional<std::string> RunKernel(Device& device, const KernelCandidate& candidate,
                                            const Op& op, std::vector<Numbers*> inputs,
                                            Numbers* output, bool packs) {
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
    return int8_kernels::Candidates(GetParam(), op);
  }
  std::optional<std::string> Run(const KernelCandidate& candidate, const Op& op,
                                 std::vector<Numbers*> inputs, Numbers* output,
                                 bool packs = false) const {
    return RunKernel(*device_, candidate, op, std::move(inputs), output, packs);
  }

  Device* device_ = nullptr;
};

// Quantised weights of channel k, as values: the largest is 127 steps.
inline Values QuantisedRow(const Numbers& w, int64_t row, int64_t stride, int64_t first) {
  float largest = 0;
  const auto at = [&](int64_t i) { return static_cast<float>(w.numbers[first + i * stride]); };
  for (int64_t i = 0; i < row; ++i) largest = std::max(largest, std::abs(at(i)));
  const float scale = largest / 127;
  Values values;
  for (int64_t i = 0; i < row; ++i)
    values.push_back(std::nearbyint(at(i) / scale) * static_cast<double>(scale));
  return values;
}

inline double ApplyInDouble(const ops::Epilogue& epilogue, double value, double added) {
  for (const ops::Pointwise& entry : epilogue)
    value = entry.kind == Kind::kAdd ? value + added : ops::ApplyPointwise(entry, value);
  return value;
}

struct EpilogueCase {
  const char* name;
  ops::Epilogue epilogue;
  DType added = DType::kUInt8;  // type of the added term
};

inline const std::vector<EpilogueCase> kEpilogues = {
    {"plain", {}},
    {"relu", {{Kind::kRelu}}},
    {"leaky relu", {{Kind::kRelu, 0.25F}}},
    {"clip", {{Kind::kClip, 0, 6}}},
    {"add", {{Kind::kAdd, 0, 0, 3}}},
    {"add int8, relu", {{Kind::kAdd, 0, 0, 3}, {Kind::kRelu}}, DType::kInt8},
    {"add float, relu", {{Kind::kAdd, 0, 0, 3}, {Kind::kRelu}}, DType::kFloat},
    {"add, clip", {{Kind::kAdd, 0, 0, 3}, {Kind::kClip, 0, 6}}},
};

inline void CheckProduct(Device& device, const std::string& what, const Op& op, Numbers* x,
                         Numbers* w, Numbers* bias, const EpilogueCase& epilogue, OperandDesc y,
                         const Values& sums, int64_t pixels, std::set<std::string>* served) {
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
inline void ExpectAllServed(const Device& device, const Op& op, std::span<const OperandDesc> inputs,
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

}  // namespace caffe::int8_kernels
