// Tests each kernel for convolutions and their gradients with random geometries: 1 to 3 axes,
// strides above kernels, dilation, groups, odd channels, padding beyond the window.
//
// CAFFE_SWEEP=N tries N geometries of each type instead of 300 of the types with few bits,
// CAFFE_SWEEP_SEED other ones; scripts/sweep_convolutions.py does this for each instruction set of
// the processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "caffe/cpu/kernels/conv_check.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/int8.hpp"
#include "tests/support/op_case.hpp"

namespace caffe {
namespace {

int64_t Environment(const char* name, int64_t otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoll(value);
}

// Random convolutions that have at least one output and at most a few million products.
class Geometries {
 public:
  explicit Geometries(uint64_t seed) : random_(seed) {}

  struct Convolution {
    ops::ConvGeometry geometry;
    std::vector<int64_t> x, w, y;
    ops::Epilogue epilogue;
    Layout layout = Layout::kPlain;
    bool has_bias = false, is_packed = false;
  };

  Convolution Next() {
    while (true) {
      Convolution conv = Draw();
      if (Fits(&conv)) return conv;
    }
  }

 private:
  int64_t OneOf(std::initializer_list<int64_t> values) {
    return values.begin()[random_() % values.size()];
  }
  Convolution Draw() {
    Convolution conv;
    const int64_t axes = OneOf({1, 2, 2, 2, 2, 3});
    for (int64_t i = 0; i < axes; ++i) {
      conv.geometry.kernel.push_back(OneOf({1, 1, 2, 3, 3, 5, 7}));
      conv.geometry.stride.push_back(OneOf({1, 1, 1, 2, 2, 3, 4}));
      conv.geometry.dilation.push_back(OneOf({1, 1, 1, 2, 3}));
      conv.geometry.pad.push_back(OneOf({0, 0, 1, 1, 2, 3, 4}));
    }
    const bool is_square = OneOf({0, 0, 1}) != 0;
    for (auto* values : {&conv.geometry.kernel, &conv.geometry.stride, &conv.geometry.dilation,
                         &conv.geometry.pad}) {
      if (is_square) std::ranges::fill(*values, values->front());
    }
    const int64_t in = OneOf({1, 2, 3, 4, 7, 8, 16, 17, 24, 31, 32, 33, 40, 47, 64, 72, 100});
    const int64_t out = OneOf({1, 2, 3, 5, 8, 10, 16, 17, 30, 32, 33, 48, 64, 65, 96});
    conv.x = {OneOf({1, 1, 2, 3, 5}), in};
    conv.w = {out, in};
    switch (OneOf({0, 0, 0, 1, 2})) {
      case 1:  // depthwise
        conv.geometry.group = in;
        conv.w = {in * OneOf({1, 1, 2}), 1};
        break;
      case 2:
        conv.geometry.group = OneOf({2, 4});
        conv.x[1] = in * conv.geometry.group;
        conv.w[0] = out * conv.geometry.group;
        break;
    }
    conv.y = {conv.x[0], conv.w[0]};
    for (int64_t i = 0; i < axes; ++i) {
      conv.x.push_back(OneOf({1, 2, 3, 5, 6, 7, 9, 12, 14, 15, 19, 28, 30, 31, 33}));
      conv.w.push_back(conv.geometry.kernel[static_cast<size_t>(i)]);
    }
    if (axes == 2 && OneOf({0, 1}) != 0) conv.layout = Layout::kChannelsLast;
    conv.has_bias = OneOf({0, 1}) != 0;
    conv.is_packed = OneOf({0, 1}) != 0;
    using Kind = ops::Pointwise::Kind;
    if (OneOf({0, 0, 1}) != 0) conv.epilogue.push_back({.kind = Kind::kAdd, .operand = 3});
    if (OneOf({0, 0, 1}) != 0) conv.epilogue.push_back({.kind = Kind::kRelu});
    return conv;
  }
  // Sets the output's extents. Returns false if the convolution is too small or too large.
  static bool Fits(Convolution* conv) {
    double products = 1;
    for (int i = 0; i < conv->geometry.spatial_axes(); ++i) {
      const int64_t padded = conv->x[2 + i] + 2 * conv->geometry.pad[i];
      if (padded < conv->geometry.Span(i)) return false;
      conv->y.push_back(conv->geometry.OutputSize(i, conv->x[2 + i]));
    }
    for (const int64_t extent : conv->y) products *= static_cast<double>(extent);
    for (size_t i = 1; i < conv->w.size(); ++i) products *= static_cast<double>(conv->w[i]);
    return products < 4e6;
  }

  std::mt19937_64 random_;
};

// Input 3 is the term that an adding epilogue reads.
std::vector<OperandDesc> WithAdded(std::vector<OperandDesc> inputs, const OperandDesc& added,
                                   const ops::Epilogue& epilogue) {
  if (ops::AddedOperand(epilogue) >= 0) inputs.push_back(added);
  return inputs;
}

DType ComputeTypeOf(DType dtype) {
  return dtype == DType::kDouble ? DType::kDouble : DType::kFloat;
}

struct Counts {
  int64_t tried = 0, wrong = 0, refused = 0;
};

class ConvSweepTest : public ::testing::TestWithParam<DType> {
 protected:
  void TryAll(const Op& op, const std::vector<OperandDesc>& inputs,
              const std::vector<OperandDesc>& outputs) {
    const KernelRequest request{op, inputs, outputs, *testing::DeviceOrNull(DeviceKind::kCpu)};
    const DType dtype = GetParam();
    for (const auto& candidate : KernelRegistry::Get().Candidates(DeviceKind::kCpu, op.type())) {
      const bool serves = Is8Bit(dtype) ? candidate.Serves({DType::kInt8, DType::kFloat})
                                        : candidate.Serves({dtype, ComputeTypeOf(dtype)});
      if (dtype == DType::kUInt8 && !candidate.traits.takes_unsigned) continue;
      const ops::Epilogue* const epilogue = op.epilogue();
      const bool fuses = epilogue == nullptr || epilogue->empty() ||
                         (candidate.traits.fuses != nullptr && candidate.traits.fuses(*epilogue));
      if (!serves || !fuses ||
          (candidate.traits.layout && *candidate.traits.layout != inputs[0].layout))
        continue;
      const KernelOrRefusal answer = candidate.factory(request);
      if (const auto* refusal = std::get_if<Refusal>(&answer)) {
        if (refusal->reason.find("wrongly") != std::string::npos) ++counts_[candidate.name].refused;
        continue;
      }
      Counts& counts = counts_[candidate.name];
      ++counts.tried;
      const auto fault = cpu::FaultOfConv(request, std::get<Kernel>(answer));
      if (!fault) continue;
      ++counts.wrong;
      ADD_FAILURE() << candidate.name << ", " << op.Attributes() << ", " << Name(inputs[0].layout)
                    << ' ' << inputs[0].shape.ToString() << " -> " << outputs[0].shape.ToString()
                    << ": " << *fault;
    }
  }
  void TearDown() override {
    for (const auto& [name, counts] : counts_) {
      std::cout << Name(GetParam()) << ' ' << name << ": " << counts.tried << " geometries, "
                << counts.wrong << " wrong, " << counts.refused << " more refused after a check\n";
    }
  }

  std::map<std::string, Counts> counts_;
};

TEST_P(ConvSweepTest, EachKernelIsRight) {
  const DType dtype = GetParam();
  const bool is_wide = dtype == DType::kFloat || dtype == DType::kDouble;
  if (is_wide && std::getenv("CAFFE_SWEEP") == nullptr) GTEST_SKIP() << "CAFFE_SWEEP is not set";
  const bool has_numbers = Is8Bit(dtype);
  Geometries geometries(static_cast<uint64_t>(Environment("CAFFE_SWEEP_SEED", 1)));
  for (int64_t left = Environment("CAFFE_SWEEP", 300); left > 0; --left) {
    Geometries::Convolution conv = geometries.Next();
    const OperandDesc x{{Shape(conv.x), dtype, conv.layout, 0.5F}};
    const OperandDesc y{{Shape(conv.y), dtype, conv.layout, 0.25F}};
    const DType parameter = dtype == DType::kDouble ? dtype : DType::kFloat;
    OperandDesc w{{Shape(conv.w), has_numbers ? DType::kFloat : dtype}};
    OperandDesc dw{{Shape(conv.w), parameter}};
    w.may_be_packed = dw.may_be_packed = conv.is_packed;
    OperandDesc bias{{Shape{conv.w[0]}, parameter}};
    bias.present = conv.has_bias;
    if (has_numbers && !ops::FusesNumbers(conv.epilogue)) conv.epilogue.clear();
    TryAll(ops::Conv{conv.geometry, {}, conv.epilogue}, WithAdded({x, w, bias}, y, conv.epilogue),
           {y});
    if (has_numbers) continue;
    TryAll(ops::ConvGradData{conv.geometry}, {y, w}, {x});
    TryAll(ops::ConvGradWeights{conv.geometry}, {x, y}, {dw, {{Shape{conv.w[0]}, parameter}}});
  }
}

std::string NameOfType(const ::testing::TestParamInfo<DType>& info) {
  return std::string(Name(info.param));
}

INSTANTIATE_TEST_SUITE_P(Types, ConvSweepTest,
                         ::testing::Values(DType::kDouble, DType::kFloat, DType::kBFloat16,
                                           DType::kFloat16, DType::kUInt8, DType::kInt8),
                         NameOfType);

}  // namespace
}  // namespace caffe
