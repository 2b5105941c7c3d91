#include "tests/support/op_case.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <stdexcept>

#include "caffe/core/philox.hpp"
#include "caffe/ops/arrays.hpp"
#include "caffe/ops/batch_norm_relu_grad.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/conv_grad_norm.hpp"
#include "caffe/ops/conv_into.hpp"
#include "caffe/ops/conv_pair.hpp"
#include "caffe/ops/conv_statistics.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/fold.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/loss.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/pool.hpp"
#include "caffe/ops/random.hpp"
#include "caffe/ops/relu_grad_sum.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

DType TypeOf(const CaseOperand& operand, DType dtype) {
  if (operand.dtype) return *operand.dtype;
  return operand.is_wide && dtype != DType::kDouble ? DType::kFloat : dtype;
}

ops::Pointwise Relu(float slope = 0) {
  return {ops::Pointwise::Kind::kRelu, slope};
}

Layout LayoutOf(const CaseOperand& operand, OperandSet followers, size_t index, Layout layout) {
  if (operand.layout) return *operand.layout;
  return operand.shape.num_axes() == 4 && followers.contains(index) ? layout : Layout::kPlain;
}

double Rounded(double value, DType dtype) {
  if (dtype == DType::kUInt8) return std::round(value);
  return VisitFloat(dtype, [&]<typename E>(TypeTag<E>) { return static_cast<double>(E(value)); });
}

Elements Draw(const CaseOperand& operand, DType dtype, uint64_t stream,
              const std::vector<Elements>& before) {
  if (!operand.is_present) return {};
  Elements values(operand.shape.count());
  const RandomStream random(1, stream);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = random.Bits(i);
    if (operand.value) {
      values[i] = operand.value(before, static_cast<int64_t>(i));
    } else if (operand.is_integer) {
      values[i] =
          operand.low + ToRange(bits, static_cast<uint32_t>(operand.high - operand.low) + 1);
    } else {
      values[i] = operand.low + (operand.high - operand.low) * static_cast<double>(ToUniform(bits));
    }
    values[i] = Rounded(values[i], TypeOf(operand, dtype));
  }
  return values;
}

OperandDesc Describe(const CaseOperand& operand, DType dtype, Layout layout) {
  OperandDesc desc;
  desc.shape = operand.shape;
  desc.dtype = TypeOf(operand, dtype);
  desc.layout = layout;
  desc.present = operand.is_present;
  return desc;
}

// An operand's memory in the form that a kernel sees.
class Buffer {
 public:
  Buffer(const OperandDesc& desc, Device& device) : device_(&device) {
    static_cast<TensorDesc&>(view_) = desc;
    if (!desc.present) return;
    memory_ = device.Allocate(desc.bytes());
    view_.data = memory_.get();
  }
  const TensorView& view() const { return view_; }
  void Set(const Elements& values) {
    if (view_.data == nullptr) return;
    std::vector<char> bytes(view_.bytes());
    CopyTensor({{view_.shape, DType::kDouble, Layout::kPlain}, const_cast<double*>(values.data())},
               {view_, bytes.data()});
    device_->CopyFromHost(view_.data, bytes.data(), bytes.size());
  }
  Elements Get() const {
    if (view_.data == nullptr) return {};
    std::vector<char> bytes(view_.bytes());
    device_->CopyToHost(bytes.data(), view_.data, bytes.size());
    Elements values(view_.count());
    CopyTensor({view_, bytes.data()},
               {{view_.shape, DType::kDouble, Layout::kPlain}, values.data()});
    return values;
  }

 private:
  Device* device_;
  std::shared_ptr<void> memory_;
  TensorView view_;
};

// What a pass gives its kernels; on a device that replays its work, in its memory alone. Kernels
// may not rely on a workspace's contents.
class Pass {
 public:
  Pass(size_t workspace_bytes, const RandomState& random, Device& device)
      : workspace_(device.Allocate(workspace_bytes)) {
    constexpr double kLossScale = 4;
    const std::vector<char> noise(workspace_bytes, 0x7f);
    device.CopyFromHost(workspace_.get(), noise.data(), noise.size());
    context_.workspace = workspace_.get();
    context_.stream = &device.compute_stream();
    const uint64_t numbers[] = {random.seed, random.pass, std::bit_cast<uint64_t>(kLossScale)};
    numbers_ = device.Allocate(sizeof(numbers));
    device.CopyFromHost(numbers_.get(), numbers, sizeof(numbers));
    context_.loss_scale = static_cast<const double*>(numbers_.get()) + 2;
    if (device.kind() == DeviceKind::kCpu) {
      context_.random = random;
    } else {
      context_.random.on_device = static_cast<const uint64_t*>(numbers_.get());
    }
  }
  const KernelContext& context() const { return context_; }

 private:
  std::shared_ptr<void> workspace_, numbers_;
  KernelContext context_;
};

// A kernel and the operands that a case gives it.
class PreparedCase {
 public:
  PreparedCase(const OpCase& test, Device& device, Kernel kernel,
               const std::vector<OperandDesc>& in, const std::vector<OperandDesc>& out)
      : kernel_(std::move(kernel)),
        pass_(kernel_.workspace_bytes, {.seed = 5, .pass = test.pass}, device),
        context_(pass_.context()) {
    for (const OperandDesc& desc : in) {
      input_views_.push_back(inputs_.emplace_back(desc, device).view());
    }
    for (const OperandDesc& desc : out) {
      output_views_.push_back(outputs_.emplace_back(desc, device).view());
    }
    context_.inputs = input_views_;
    context_.outputs = output_views_;
  }
  PreparedCase(const PreparedCase&) = delete;
  PreparedCase& operator=(const PreparedCase&) = delete;

  void SetInputs(const std::vector<Elements>& values) {
    for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i].Set(values[i]);
  }
  void SetOutputs(const std::vector<Elements>& values) {
    for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].Set(values[i]);
  }
  void Accumulate(OperandSet outputs) { context_.accumulated = outputs; }
  void Run() const { kernel_.run(context_); }
  std::vector<Elements> Outputs() const {
    std::vector<Elements> values;
    for (const Buffer& output : outputs_) values.push_back(output.Get());
    return values;
  }

 private:
  const Kernel kernel_;
  const Pass pass_;
  std::vector<Buffer> inputs_, outputs_;
  std::vector<TensorView> input_views_, output_views_;
  KernelContext context_;
};

std::optional<Kernel> MakeKernel(const OpCase& test, Device& device,
                                 const KernelCandidate& candidate,
                                 const std::vector<OperandDesc>& in,
                                 const std::vector<OperandDesc>& out,
                                 const KernelSettings& settings, std::string* refusal) {
  KernelOrRefusal answer = candidate.factory({test.op, in, out, device, settings});
  if (Kernel* kernel = std::get_if<Kernel>(&answer)) return std::move(*kernel);
  if (refusal != nullptr) *refusal = std::get<Refusal>(answer).reason;
  return std::nullopt;
}

std::optional<CaseResult> Run(const OpCase& test, Device& device, const KernelCandidate& candidate,
                              const std::vector<OperandDesc>& in,
                              const std::vector<OperandDesc>& out, bool accumulates,
                              const CaseData& data, int runs, std::string* refusal) {
  // Rounding to TF32 is allowed by default, and wrong in no way that a tolerance for floats has
  // room for.
  std::optional<Kernel> kernel =
      MakeKernel(test, device, candidate, in, out, {.strict_fp32 = true}, refusal);
  if (!kernel) return std::nullopt;
  const std::string algorithm = kernel->algorithms.empty() ? "" : kernel->algorithms[0];
  PreparedCase prepared(test, device, std::move(*kernel), in, out);
  prepared.SetInputs(data.inputs);
  if (accumulates) prepared.Accumulate(test.accumulates);
  for (int run = 0; run < runs; ++run) {
    prepared.SetOutputs(data.outputs);
    prepared.Run();
  }
  return CaseResult{prepared.Outputs(), algorithm};
}

bool Fuses(const KernelCandidate& candidate, const Op& op) {
  const ops::Epilogue* epilogue = op.epilogue();
  return epilogue == nullptr || epilogue->empty() ||
         (candidate.traits.fuses != nullptr && candidate.traits.fuses(*epilogue));
}

std::vector<OperandDesc> DescribeAll(const std::vector<CaseOperand>& operands, OperandSet followers,
                                     DType dtype, Layout layout) {
  std::vector<OperandDesc> descs;
  for (size_t i = 0; i < operands.size(); ++i) {
    descs.push_back(Describe(operands[i], dtype, LayoutOf(operands[i], followers, i, layout)));
  }
  return descs;
}

// A few drawn values over and over: large operands that do not take long to make.
std::vector<Elements> RepeatedData(const std::vector<CaseOperand>& operands, DType dtype) {
  std::vector<Elements> data;
  for (const CaseOperand& operand : operands) {
    CaseOperand few = operand;
    few.shape = Shape{std::min<int64_t>(operand.shape.count(), 4099)};
    const Elements values = Draw(few, dtype, data.size(), {});
    Elements& all = data.emplace_back(operand.is_present ? operand.shape.count() : 0);
    for (size_t i = 0; i < all.size(); ++i) all[i] = values[i % values.size()];
  }
  return data;
}

// The i-th output position's winner somewhere in its window, none for a few.
CaseOperand MaskOf(const ops::PoolGeometry& geometry, std::vector<int64_t> output, int64_t height,
                   int64_t width, DType type) {
  CaseOperand mask = type == DType::kUInt8 ? T(output).As(type) : T(output).Wide();
  const ops::MaskCode code(geometry, width, type);
  mask.value = [=](const std::vector<Elements>&, int64_t i) -> double {
    const int64_t ow = i % output[3], oh = i / output[3] % output[2];
    const ops::PoolWindow rows = ops::WindowAt(geometry, 0, height, oh);
    const ops::PoolWindow columns = ops::WindowAt(geometry, 1, width, ow);
    if (rows.begin >= rows.end || columns.begin >= columns.end || i % 13 == 5) return code.none();
    const uint32_t bits = RandomStream(1, 77).Bits(i);
    const int64_t h = rows.begin + bits % (rows.end - rows.begin);
    return code.At(oh, ow, h, columns.begin + (bits >> 8) % (columns.end - columns.begin));
  };
  return mask;
}

struct ConvShape {
  std::string name;
  std::vector<int64_t> x;
  int64_t outputs;
  ops::ConvGeometry geometry;
  bool is_for_forward = false;  // tiles and epilogues, which gradients at weights do not have
};

struct ConvPairShape {
  std::string name;
  std::vector<int64_t> x;
  int64_t hidden;
  ops::ConvGeometry first, second;
};

// A depthwise convolution behind one of 1x1, and pairs of others.
void AddConvPairCases(std::vector<OpCase>* cases) {
  const ops::ConvGeometry pointwise = {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1};
  const auto depthwise = [](int64_t channels, int64_t stride, int64_t pad) {
    return ops::ConvGeometry{{3, 3}, {stride, stride}, {pad, pad}, {1, 1}, channels};
  };
  const std::vector<ConvPairShape> shapes = {
      {"", {2, 8, 14, 14}, 96, pointwise, depthwise(96, 1, 1)},
      {"Strided", {2, 24, 13, 31}, 48, pointwise, depthwise(48, 2, 1)},
      {"StridedEven", {1, 3, 8, 6}, 16, pointwise, depthwise(16, 2, 1)},
      {"Unpadded", {1, 5, 5, 24}, 32, pointwise, depthwise(32, 1, 0)},
      {"WidelyPadded", {2, 5, 3, 4}, 32, pointwise, depthwise(32, 1, 2)},
      {"OnePixel", {3, 40, 1, 1}, 80, pointwise, depthwise(80, 1, 1)},
      {"BeyondInput", {2, 5, 2, 2}, 16, pointwise, depthwise(16, 2, 0)},
      {"OddChannels", {2, 5, 6, 6}, 23, pointwise, depthwise(23, 1, 1)},
      {"NotPointwise", {1, 6, 8, 7}, 4, {{3, 2}, {2, 1}, {1, 0}, {1, 1}, 2}, pointwise},
  };
  for (const ConvPairShape& shape : shapes) {
    const ops::ConvPair pair = {{shape.first}, {shape.second}};
    const int64_t outputs = shape.hidden;
    std::vector<int64_t> y = {shape.x[0], outputs};
    std::vector<int64_t> w = {shape.hidden, shape.x[1] / shape.first.group};
    std::vector<int64_t> second_w = {outputs, shape.hidden / shape.second.group};
    for (int i = 0; i < 2; ++i) {
      y.push_back(shape.second.OutputSize(i, shape.first.OutputSize(i, shape.x[2 + i])));
      w.push_back(shape.first.kernel[i]);
      second_w.push_back(shape.second.kernel[i]);
    }
    const CaseOperand bias = T({shape.hidden}).Wide();
    const auto add = [&](const std::string& name, const ops::ConvPair& op, CaseOperand first_bias,
                         CaseOperand second_bias) {
      cases->push_back(
          {"ConvPair" + name + shape.name,
           op,
           {T(shape.x), T(w), std::move(first_bias), T(second_w), std::move(second_bias)},
           {T(y)}});
    };
    ops::ConvPair relus = pair;
    relus.first.epilogue = {Relu()};
    relus.second.epilogue = {Relu(0.25F)};
    add("", pair, bias, bias);
    add("Relus", relus, bias, bias);
    add("NoBias", relus, Absent(), Absent());
  }
}

void AddConvCases(std::vector<OpCase>* cases) {
  const std::vector<ConvShape> shapes = {
      {"3x3", {2, 16, 9, 7}, 24, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}},
      {"3x3Tiles", {2, 32, 9, 12}, 48, {{3, 3}, {1, 1}, {0, 2}, {1, 1}, 1}, true},
      {"1x1", {2, 32, 6, 5}, 16, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}},
      {"1x1Strided", {2, 16, 7, 7}, 8, {{1, 1}, {2, 2}, {0, 0}, {1, 1}, 1}},
      {"1x1Wide", {1, 128, 3, 4}, 136, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}},
      {"1x1WideStrided", {1, 136, 3, 5}, 128, {{1, 1}, {2, 2}, {0, 0}, {1, 1}, 1}},
      {"1x1Blocks", {2, 6, 5, 9}, 64, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}},
      {"Strided", {2, 8, 11, 10}, 8, {{5, 3}, {2, 3}, {2, 1}, {1, 1}, 1}},
      {"Groups", {2, 8, 6, 6}, 12, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 2}},
      {"Depthwise", {2, 16, 6, 6}, 16, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 16}},
      {"DepthwiseStrided", {2, 23, 9, 10}, 23, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, 23}},
      {"DepthwiseOdd", {1, 40, 11, 8}, 40, {{2, 3}, {2, 2}, {0, 2}, {1, 1}, 40}},
      {"DepthwiseTall", {2, 7, 5, 17}, 7, {{5, 3}, {1, 1}, {3, 1}, {1, 1}, 7}},
      {"DepthwiseBeyondInput", {2, 5, 1, 2}, 5, {{2, 3}, {2, 2}, {0, 0}, {1, 1}, 5}},
      {"Dilated", {1, 6, 12, 9}, 5, {{3, 3}, {1, 1}, {2, 2}, {2, 2}, 1}},
      {"DilatedOdd", {1, 31, 13, 2}, 31, {{4, 4}, {1, 1}, {3, 3}, {2, 2}, 1}, true},
      {"OnlyPadding", {1, 7, 2, 1}, 31, {{4, 4}, {2, 2}, {3, 3}, {2, 2}, 1}},
      {"3Channels", {2, 3, 15, 15}, 16, {{7, 7}, {2, 2}, {3, 3}, {1, 1}, 1}},
      {"3ChannelsBlocks", {3, 3, 9, 19}, 80, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}},
      {"3ChannelsWide", {1, 3, 4, 3}, 32, {{2, 5}, {3, 2}, {2, 4}, {1, 1}, 1}},
      {"1Channel", {2, 1, 12, 12}, 20, {{5, 5}, {1, 1}, {0, 0}, {1, 1}, 1}},
      {"BeyondInput", {2, 4, 2, 3}, 5, {{3, 5}, {2, 3}, {0, 0}, {1, 1}, 1}},
      {"NarrowerThanStride", {2, 8, 6, 1}, 7, {{3, 2}, {3, 3}, {1, 1}, {1, 1}, 1}},
      {"1D", {2, 5, 17}, 6, {{4}, {2}, {1}, {1}, 1}},
      {"3D", {1, 3, 5, 6, 4}, 4, {{3, 2, 3}, {1, 2, 1}, {1, 0, 1}, {1, 1, 1}, 1}},
      {"4D", {1, 2, 3, 3, 3, 3}, 2, {{2, 2, 2, 2}, {1, 1, 1, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}, 1}},
  };
  for (const ConvShape& shape : shapes) {
    const ops::ConvGeometry& g = shape.geometry;
    std::vector<int64_t> y = {shape.x[0], shape.outputs}, w = {shape.outputs, shape.x[1] / g.group};
    for (int i = 0; i < g.spatial_axes(); ++i) {
      y.push_back(g.OutputSize(i, shape.x[2 + i]));
      w.push_back(g.kernel[i]);
    }
    const CaseOperand bias = T({shape.outputs}).Wide();
    const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                         std::vector<CaseOperand> out, OperandSet accumulates = {}) {
      cases->push_back(
          {name + shape.name, std::move(op), std::move(in), std::move(out), accumulates});
    };
    add("Conv", ops::Conv{g}, {T(shape.x), T(w), bias}, {T(y)});
    add("ConvNoBias", ops::Conv{g}, {T(shape.x), T(w)}, {T(y)});
    add("ConvRelu", ops::Conv{g, {}, {Relu()}}, {T(shape.x), T(w), bias}, {T(y)});
    add("ConvLeaky", ops::Conv{g, {}, {Relu(0.25f)}}, {T(shape.x), T(w), bias}, {T(y)});
    using Kind = ops::Pointwise::Kind;
    const CaseOperand x_of_y = T(y);
    add("ConvClip", ops::Conv{g, {}, {{Kind::kClip, -0.5f, 0.75f}}}, {T(shape.x), T(w), bias},
        {T(y)});
    add("ConvSwish", ops::Conv{g, {}, {{Kind::kSwish, 1.5f}}}, {T(shape.x), T(w), bias}, {T(y)});
    add("ConvAddRelu", ops::Conv{g, {}, {{Kind::kAdd, 0, 0, 3}, Relu()}},
        {T(shape.x), T(w), bias, x_of_y}, {T(y)});
    add("ConvScaleShift", ops::Conv{g, {}, {{Kind::kScale, 0, 0, 3}, {Kind::kShift, 0, 0, 4}}},
        {T(shape.x), T(w), Absent(), bias, bias}, {T(y)});
    std::vector<int64_t> whole = y;
    whole[1] += 13;
    add("ConvInto", ops::ConvInto{{g, {}, {Relu()}}, 5}, {T(shape.x), T(w), bias, T(whole)},
        {T(whole)});
    const CaseOperand statistics = T({shape.outputs}).Wide();
    add("ConvStatistics", ops::ConvStatistics{{g}}, {T(shape.x), T(w)},
        {T(y), statistics, statistics});
    add("ConvStatisticsRunning",
        ops::ConvStatistics{{g}, ops::UpdateRunningStatistics{0.9, 12, false}}, {T(shape.x), T(w)},
        {T(y), statistics, statistics, statistics, statistics, Absent()});
    const CaseOperand y_of_x = T(shape.x);
    // Terms of one sign: what sums of others lose is no kernel's fault.
    const CaseOperand inner = T({shape.x[1]}).Wide();
    add("ConvGradNorm", ops::ConvGradNorm{{g}, 1e-3},
        {T(y).In(0, 1), T(w).In(0, 1), y_of_x, inner.In(-2, -1.5), inner.In(0.5, 2),
         inner.In(0.5, 1), inner.In(-2, -1)},
        {T(shape.x), inner, inner});
    add("ConvGradData", ops::ConvGradData{g}, {T(y), T(w)}, {T(shape.x)});
    add("ConvGradDataRelu", ops::ConvGradData{g, {}, {{Kind::kReluGrad, 0, 0, 2}}},
        {T(y), T(w), y_of_x}, {T(shape.x)});
    add("ConvGradDataAddsLeaky",
        ops::ConvGradData{
            g, {}, {{Kind::kAdd, 0, 0, 2}, {Kind::kAdd, 0, 0, 3}, {Kind::kReluGrad, 0.25f, 0, 4}}},
        {T(y), T(w), y_of_x, y_of_x, y_of_x}, {T(shape.x)});
    if (shape.is_for_forward) continue;
    add("ConvGradWeights", ops::ConvGradWeights{g}, {T(shape.x), T(y)}, {T(w).Wide(), bias},
        {0, 1});
    add("ConvGradWeightsNoBias", ops::ConvGradWeights{g}, {T(shape.x), T(y)}, {T(w).Wide()}, {0});
    add("ConvGradBiasOnly", ops::ConvGradWeights{g}, {T(shape.x), T(y)}, {Absent(), bias}, {1});
  }
}

void AddGemmCases(std::vector<OpCase>* cases) {
  struct Size {
    int64_t rows, columns, inner;
  };
  for (const Size s :
       {Size{1, 40, 64}, Size{3, 33, 50}, Size{64, 10, 500}, Size{37, 45, 29}, Size{8, 300, 257}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const ops::Gemm op{s.rows, s.columns, s.inner, ta, tb};
        const CaseOperand a = ta ? T({s.inner, s.rows}) : T({s.rows, s.inner});
        const CaseOperand b = tb ? T({s.columns, s.inner}) : T({s.inner, s.columns});
        const std::string name =
            StrCat("Gemm", s.rows, "x", s.columns, "x", s.inner, ta ? "T" : "N", tb ? "T" : "N");
        const CaseOperand c = T({s.rows, s.columns});
        cases->push_back({name, op, {a, b}, {c}, {0}});
        cases->push_back({name + "Bias", op, {a, b, T({s.columns}).Wide()}, {c}, {0}});
        cases->push_back({name + "Wide", op, {a, b}, {c.Wide()}, {0}});
        ops::Gemm relu = op;
        relu.epilogue = {Relu()};
        cases->push_back({name + "Relu", relu, {a, b}, {c}, {}});
      }
    }
  }
}

void AddPoolCases(std::vector<OpCase>* cases) {
  struct PoolShape {
    std::string name;
    std::vector<int64_t> x;
    ops::PoolGeometry geometry;
  };
  const std::vector<PoolShape> shapes = {
      {"2x2", {2, 5, 8, 6}, {{2, 2}, {2, 2}, {0, 0}, false}},
      {"Overlapping", {2, 16, 9, 7}, {{3, 3}, {2, 2}, {0, 0}, false}},
      {"Padded", {2, 8, 7, 8}, {{3, 3}, {2, 2}, {1, 1}, false}},
      {"Uneven", {1, 33, 10, 5}, {{4, 2}, {3, 1}, {2, 1}, false}},
      {"RoundsDown", {2, 8, 8, 8}, {{3, 3}, {2, 2}, {1, 1}, true}},
      {"Global", {2, 64, 7, 7}, {{7, 7}, {1, 1}, {0, 0}, false}},
      {"Gaps", {1, 3, 8, 8}, {{2, 2}, {3, 3}, {0, 0}, false}},
      {"BeyondInput", {2, 6, 2, 1}, {{3, 5}, {2, 4}, {0, 1}, false}},
      // Whole packs of channels in each type.
      {"2x2Packs", {2, 16, 7, 9}, {{2, 2}, {2, 2}, {0, 0}, false}},
      {"2x2PaddedPacks", {1, 8, 6, 5}, {{2, 2}, {2, 2}, {1, 1}, false}},
      {"Dense", {2, 24, 7, 6}, {{3, 3}, {1, 1}, {1, 1}, false}},
      {"DenseUnpadded", {1, 8, 5, 8}, {{3, 3}, {1, 1}, {0, 2}, false}},
      {"PaddedPacks", {2, 16, 8, 9}, {{3, 3}, {2, 2}, {1, 0}, false}},
      {"Sparse", {1, 16, 11, 10}, {{3, 3}, {3, 3}, {1, 1}, false}},
  };
  for (const PoolShape& shape : shapes) {
    const ops::PoolGeometry& g = shape.geometry;
    const std::vector<int64_t> y = {shape.x[0], shape.x[1], g.OutputSize(0, shape.x[2]),
                                    g.OutputSize(1, shape.x[3])};
    const CaseOperand mask = MaskOf(g, y, shape.x[2], shape.x[3], DType::kFloat);
    const CaseOperand bytes = MaskOf(g, y, shape.x[2], shape.x[3], DType::kUInt8);
    cases->push_back({"MaxPool" + shape.name, ops::MaxPool{g}, {T(shape.x)}, {T(y), T(y).Wide()}});
    cases->push_back({"MaxPoolNoMask" + shape.name, ops::MaxPool{g}, {T(shape.x)}, {T(y)}});
    cases->push_back(
        {"MaxPoolTies" + shape.name, ops::MaxPool{g}, {T(shape.x).Labels(3)}, {T(y), T(y).Wide()}});
    cases->push_back({"MaxPoolBytes" + shape.name,
                      ops::MaxPool{g},
                      {T(shape.x).Labels(3)},
                      {T(y), T(y).As(DType::kUInt8).In(0, 255)}});
    cases->push_back({"MaxPoolGrad" + shape.name, ops::MaxPoolGrad{g}, {mask, T(y)}, {T(shape.x)}});
    cases->push_back(
        {"MaxPoolGradBytes" + shape.name, ops::MaxPoolGrad{g}, {bytes, T(y)}, {T(shape.x)}});
    if (g.pad == std::array<int64_t, 2>{0, 0}) {
      const CaseOperand positive = T(shape.x).In(0.1, 1);
      cases->push_back({"StochasticPool" + shape.name,
                        ops::StochasticPool{g, 5},
                        {T(shape.x).Labels(5)},
                        {T(y), T(y).Wide()}});
      cases->push_back(
          {"StochasticPoolMean" + shape.name, ops::StochasticPoolMean{g}, {positive}, {T(y)}});
      cases->push_back({"StochasticPoolMeanGrad" + shape.name,
                        ops::StochasticPoolMeanGrad{g},
                        {positive, T(y).In(0.1, 1), T(y)},
                        {T(shape.x)}});
    }
    cases->push_back({"AvePool" + shape.name, ops::AvePool{g}, {T(shape.x)}, {T(y)}});
    cases->push_back({"AvePoolGrad" + shape.name, ops::AvePoolGrad{g}, {T(y)}, {T(shape.x)}});
  }
}

void AddNormCases(std::vector<OpCase>* cases) {
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {4, 5, 3, 4}, {2, 64, 5, 7}, {3, 17, 1, 1}, {8, 6}, {5, 3, 7}}) {
    const int64_t channels = dims[1];
    const std::string suffix = Shape(dims).ToString();
    const CaseOperand x = T(dims), c = T({channels}).Wide(), variance = c.In(0.5, 2);
    const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                         std::vector<CaseOperand> out, OperandSet accumulates = {}) {
      cases->push_back({name + suffix, std::move(op), std::move(in), std::move(out), accumulates});
    };
    const CaseOperand one = T({1}).Wide().In(1.5, 2.5);
    for (const bool relu : {false, true}) {
      const std::string r = relu ? "Relu" : "";
      const ops::Epilogue after = relu ? ops::Epilogue{Relu()} : ops::Epilogue{};
      const auto added = [&](int operand) {
        ops::Epilogue epilogue = {{ops::Pointwise::Kind::kAdd, 0, 0, operand}};
        epilogue.insert(epilogue.end(), after.begin(), after.end());
        return epilogue;
      };
      add("BatchNorm" + r, ops::BatchNorm{1e-3, after}, {x}, {x, c, c});
      add("BatchNormScale" + r, ops::BatchNorm{1e-3, after}, {x, c, c}, {x, c, c});
      add("BatchNormRunning" + r,
          ops::BatchNorm{1e-3, after, ops::UpdateRunningStatistics{0.9, 12, relu}}, {x, c, c},
          {x, c, c, c, c, one});
      add("BatchNormInference" + r, ops::BatchNormInference{1e-3, after}, {x, c, variance, one},
          {x});
      add("BatchNormInferenceScale" + r, ops::BatchNormInference{1e-3, after},
          {x, c, variance, one, c, c}, {x});
      add("BatchNormResidual" + r, ops::BatchNorm{1e-3, added(3)}, {x, Absent(), Absent(), x},
          {x, c, c});
      add("BatchNormScaleResidual" + r, ops::BatchNorm{1e-3, added(3)}, {x, c, c, x}, {x, c, c});
      add("BatchNormInferenceResidual" + r, ops::BatchNormInference{1e-3, added(6)},
          {x, c, variance, one, c, c, x}, {x});
      add("BatchNormInferenceNoFactor" + r, ops::BatchNormInference{1e-3, after},
          {x, c, variance, Absent(), c, c}, {x});
      std::vector<CaseOperand> in = {x, c, variance, x, Absent()};
      if (relu) in.push_back(x);
      add("BatchNormGrad" + r, ops::BatchNormGrad{1e-3}, in, {x});
      in[ops::BatchNormGrad::kGamma] = c;
      add("BatchNormGradScale" + r, ops::BatchNormGrad{1e-3}, in, {x, c, c}, {1, 2});
      add("BatchNormGradResidual" + r, ops::BatchNormGrad{1e-3}, in, {x, c, Absent(), x}, {1});
      add("BatchNormGradOnlyResidual" + r, ops::BatchNormGrad{1e-3}, in,
          {Absent(), Absent(), Absent(), x});
      add("BatchNormGradNoData" + r, ops::BatchNormGrad{1e-3}, in, {Absent(), c, c}, {1, 2});
    }
    const std::vector<CaseOperand> of_relu = {x, c, variance, x, c, c},
                                   unscaled = {x, c, variance, x, Absent(), Absent()};
    add("BatchNormReluGrad", ops::BatchNormReluGrad{1e-3}, of_relu, {x, c, c}, {1, 2});
    add("BatchNormReluGradUnscaled", ops::BatchNormReluGrad{1e-3}, unscaled, {x});
    add("BatchNormReluGradNoData", ops::BatchNormReluGrad{1e-3}, of_relu, {Absent(), c, c}, {1, 2});
    const std::vector<CaseOperand> of_sums = {x, c, variance, x, c, c, c};
    add("BatchNormGradOfSums", ops::BatchNormGradOfSums{1e-3}, of_sums, {x, c, c}, {1, 2});
    add("BatchNormGradOfSumsNoData", ops::BatchNormGradOfSums{1e-3}, of_sums, {Absent(), c, c},
        {1, 2});
    const std::vector<int64_t> rows = {channels, 3, 2};
    const CaseOperand w = T(rows).Wide();
    add("FoldChannels", ops::FoldChannels{1e-3}, {w, c, c, variance, one, c, c}, {w, c});
    add("FoldChannelsNoBias", ops::FoldChannels{1e-3},
        {w, Absent(), c, variance, one, Absent(), Absent()}, {w, c});
    add("FoldChannelsScale", ops::FoldChannels{1e-3},
        {w, c, Absent(), Absent(), Absent(), c, Absent()}, {w, c});
    add("BatchNormInferenceGrad", ops::BatchNormInferenceGrad{1e-3}, {x, variance, one}, {x});
    add("BatchNormInferenceGradScale", ops::BatchNormInferenceGrad{1e-3}, {x, variance, one, c},
        {x});
    add("BatchNormInferenceGradNoFactor", ops::BatchNormInferenceGrad{1e-3},
        {x, variance, Absent(), c}, {x});
  }
  const CaseOperand c = T({7}).Wide(), one = T({1}).Wide();
  for (const bool sums : {true, false}) {
    for (const uint64_t pass : {uint64_t{0}, uint64_t{3}}) {
      cases->push_back({StrCat("UpdateRunningStatistics", sums ? "Sums" : "Average", pass),
                        ops::UpdateRunningStatistics{0.9, 12, sums},
                        {c, c},
                        {c, c, one},
                        {},
                        pass});
    }
  }
  for (const uint64_t pass : {uint64_t{0}, uint64_t{3}}) {
    cases->push_back({StrCat("UpdateRunningStatisticsNoCopy", pass),
                      ops::UpdateRunningStatistics{0.9, 1, false, false},
                      {c, c},
                      {c, c, Absent()},
                      {},
                      pass});
  }
  for (const int64_t size : {3, 5}) {
    for (const std::vector<int64_t>& dims :
         {std::vector<int64_t>{2, 9, 4, 5}, {2, 24, 3, 5}, {3, 8}}) {
      const CaseOperand x = T(dims);
      for (const double beta : {0.75, 0.6}) {
        const std::string name =
            StrCat(size, beta == 0.75 ? "" : "OddBeta", Shape(dims).ToString());
        cases->push_back({"Lrn" + name, ops::Lrn{size, 0.7, beta, 2}, {x}, {x}});
        cases->push_back({"LrnGrad" + name, ops::LrnGrad{size, 0.7, beta, 2}, {x, x}, {x}});
        const ops::Pointwise relu_grad{ops::Pointwise::Kind::kReluGrad, 0.25f, 0, 0};
        cases->push_back(
            {"LrnGradRelu" + name, ops::LrnGrad{size, 0.7, beta, 2, {relu_grad}}, {x, x}, {x}});
      }
    }
    const CaseOperand x = T({2, 9, 4, 5}), scale = x.Wide().In(1, 2);
    cases->push_back(
        {StrCat("LrnWithin", size), ops::LrnWithin{size, 0.7, 0.75}, {x}, {x, x.Wide()}});
    cases->push_back({StrCat("LrnWithinNoScale", size), ops::LrnWithin{size, 0.7, 0.75}, {x}, {x}});
    cases->push_back(
        {StrCat("LrnWithinGrad", size), ops::LrnWithinGrad{size, 0.7, 0.75}, {x, scale, x}, {x}});
  }
}

void AddPointwiseCases(std::vector<OpCase>* cases) {
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{2, 19, 5, 3}, {1}, {70, 1000}}) {
    const CaseOperand x = T(dims), p = x.In(0.1, 0.9);
    const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in) {
      cases->push_back({name + x.shape.ToString(), std::move(op), std::move(in), {x}});
    };
    add("Relu", ops::Relu{}, {x});
    add("ReluLeaky", ops::Relu{0.1f}, {x});
    add("ReluGrad", ops::ReluGrad{}, {x, x});
    add("ReluGradLeaky", ops::ReluGrad{0.1f}, {x, x});
    add("Sigmoid", ops::Sigmoid{}, {x.In(-8, 8)});
    add("SigmoidGrad", ops::SigmoidGrad{}, {p, x});
    add("Tanh", ops::Tanh{}, {x.In(-4, 4)});
    add("TanhGrad", ops::TanhGrad{}, {x, x});
    add("ScaleBy", ops::ScaleBy{-2.5}, {x});
    add("Affine", ops::Affine{-2.5, 0.75}, {x});
    add("RaiseTo", ops::RaiseTo{1.5}, {x.In(0.1, 2)});
    add("SquareRoot", ops::SquareRoot{}, {x.In(0, 2)});
    CaseOperand whole = x.In(-2, 2);
    whole.is_integer = true;
    add("Sign", ops::Sign{}, {whole});
    add("SignBit", ops::SignBit{}, {x});
    add("Axpby", ops::Axpby{-1.5, 0.25}, {x, x});
    add("Divide", ops::Divide{}, {x, x.In(0.5, 2)});
    add("Dropout", ops::Dropout{0.4, 11}, {x});
    add("DropoutUnscaled", ops::Dropout{0.4, 11, /*scales=*/false}, {x});
    add("EltwiseSum", ops::EltwiseSum{}, {x, x});
    add("EltwiseSumRelu", ops::EltwiseSum{{}, {Relu()}}, {x, x});
    add("EltwiseSumCoefficients", ops::EltwiseSum{{1.0f, -2.0f, 0.5f}}, {x, x, x});
    add("EltwiseSumCoefficientsRelu", ops::EltwiseSum{{1.0f, -2.0f}, {Relu()}}, {x, x});
    add("EltwiseSum4", ops::EltwiseSum{}, {x, x, x, x});
    add("EltwiseSum4Relu", ops::EltwiseSum{{}, {Relu(0.25f)}}, {x, x, x, x});
    add("EltwiseSum5", ops::EltwiseSum{}, {x, x, x, x, x});
    add("EltwiseSumSwish", ops::EltwiseSum{{}, {{ops::Pointwise::Kind::kSwish, 1.5f}}}, {x, x});
    add("EltwiseProd", ops::EltwiseProd{}, {x, x, x});
    add("EltwiseProdGrad", ops::EltwiseProdGrad{1, true}, {x, x, x, x, x});
    add("EltwiseProdGradUnstable", ops::EltwiseProdGrad{1, false}, {x, x, x, p});
    cases->push_back(
        {"EltwiseMax" + x.shape.ToString(), ops::EltwiseMax{}, {x, x, x}, {x, x.Wide()}});
    add("EltwiseMaxGrad", ops::EltwiseMaxGrad{1}, {x.Labels(3).Wide(), x});
  }
}

void AddMoveCases(std::vector<OpCase>* cases) {
  const CaseOperand x = T({2, 6, 5, 4});
  for (const DType dtype : {DType::kDouble, DType::kFloat, DType::kFloat16, DType::kBFloat16}) {
    cases->push_back({StrCat("CastTo_", Name(dtype)), ops::Cast{}, {x}, {x.As(dtype)}});
  }
  const CaseOperand plain = x.As(Layout::kPlain), last = x.As(Layout::kChannelsLast);
  cases->push_back({"ReorderToLast", ops::Reorder{}, {plain}, {last}});
  cases->push_back({"ReorderToPlain", ops::Reorder{}, {last}, {plain}});
  cases->push_back({"View", ops::View{}, {T({2, 6, 20})}, {T({12, 20})}});
  cases->push_back({"Fill", ops::Fill{2.5}, {}, {T({3, 4})}});
  cases->push_back({"LossWeight", ops::LossWeight{2.5}, {}, {T({3, 4})}});
  for (int axis = 0; axis < 4; ++axis) {
    std::vector<int64_t> part = {2, 6, 5, 4}, whole = part;
    part[axis] = 3;
    whole[axis] += 3 + whole[axis];
    cases->push_back({StrCat("Concat", axis), ops::Concat{axis}, {x, T(part), x}, {T(whole)}});
    cases->push_back({StrCat("SliceOf", axis), ops::SliceOf{axis, 2}, {T(whole)}, {x}});
  }
  const auto twice = [](const KernelContext& ctx) {
    VisitFloat(ctx.input(0).dtype, [&]<typename E>(TypeTag<E>) {
      for (int64_t i = 0; i < ctx.input(0).count(); ++i) {
        ctx.output(0).as<E>()[i] = E(2 * static_cast<double>(ctx.input(0).as<const E>()[i]));
      }
    });
  };
  cases->push_back({"HostCall", ops::HostCall{"twice", twice}, {x}, {x}});
  const auto count = [](const KernelContext& ctx) {
    for (const TensorView& y : ctx.outputs) {
      VisitFloat(y.dtype, [&]<typename E>(TypeTag<E>) {
        for (int64_t i = 0; i < y.count(); ++i) y.as<E>()[i] = E(static_cast<float>(i % 97));
      });
    }
  };
  cases->push_back(
      {"HostCallSource", ops::HostCall{"count", count, true}, {}, {T({5, 40}), T({5})}});
  for (const auto& [axis, num_axes] :
       std::vector<std::pair<int, int>>{{1, 1}, {0, 1}, {1, 2}, {0, 4}, {2, 0}}) {
    const std::vector<int64_t> dims = x.shape.dims();
    const CaseOperand s = T({dims.begin() + axis, dims.begin() + axis + num_axes}).Wide();
    const ops::BroadcastAxes axes{axis, num_axes};
    const std::string suffix = StrCat(axis, "_", num_axes);
    cases->push_back({"ScaleShift" + suffix, ops::ScaleShift{axes}, {x, s, s}, {x}});
    cases->push_back({"ScaleOnly" + suffix, ops::ScaleShift{axes}, {x, s}, {x}});
    cases->push_back({"AddBias" + suffix, ops::AddBias{axes}, {x, s}, {x}});
    cases->push_back({"SumToAxes" + suffix, ops::SumToAxes{axes}, {x}, {s}, {0}});
    cases->push_back({"SumOfProducts" + suffix, ops::SumToAxes{axes}, {x, x}, {s}, {0}});
  }
  const CaseOperand wide = T({2, 300, 3, 3}), c = T({300}).Wide();
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{4, 5, 3, 4}, {2, 16, 5, 7}, {3, 24, 21, 20}, {700, 40}}) {
    const CaseOperand data = T(dims), sums = T({dims[1]}).Wide();
    const std::string suffix = data.shape.ToString();
    cases->push_back({"ReluGradSum" + suffix, ops::ReluGradSum{}, {data, data}, {data, sums}, {1}});
    cases->push_back(
        {"ReluGradSumLeaky" + suffix, ops::ReluGradSum{0.1f}, {data, data}, {data, sums}, {1}});
  }
  cases->push_back({"ScaleShift300", ops::ScaleShift{{1, 1}}, {wide, c, c}, {wide}});
  cases->push_back({"SumOfProducts300", ops::SumToAxes{{1, 1}}, {wide, wide}, {c}, {0}});
}

void AddLossCases(std::vector<OpCase>* cases) {
  const CaseOperand x = T({4, 7, 3}), p = x.In(0.01, 0.9), labels = T({4, 3}).Labels(7);
  const CaseOperand loss = T({}).Wide();
  for (const int axis : {0, 1, 2}) {
    cases->push_back({StrCat("Softmax", axis), ops::Softmax{axis}, {x.In(-5, 5)}, {x.Wide()}});
    cases->push_back({StrCat("SoftmaxGrad", axis), ops::SoftmaxGrad{axis}, {p.Wide(), x}, {x}});
  }
  for (const int normalization : {0, 1, 2, 3}) {
    for (const bool ignores : {false, true}) {
      ops::LabelRule rule;
      if (ignores) rule.ignore_label = 2;
      rule.normalization = static_cast<ops::Normalization>(normalization);
      const std::string suffix = StrCat(normalization, ignores ? "Ignore" : "");
      cases->push_back(
          {"SoftmaxLoss" + suffix, ops::SoftmaxLoss{rule}, {p.Wide(), labels}, {loss}});
      cases->push_back(
          {"SoftmaxLossGrad" + suffix, ops::SoftmaxLossGrad{rule}, {p.Wide(), labels, loss}, {x}});
    }
  }
  cases->push_back(
      {"SoftmaxLossGradSmoothed", ops::SoftmaxLossGrad{{}, 0.2f}, {p.Wide(), labels, loss}, {x}});
  const CaseOperand weights = T({7}).Wide().In(0, 4);
  cases->push_back(
      {"SoftmaxLossWeighted", ops::SoftmaxLoss{}, {p.Wide(), labels, weights}, {loss}});
  cases->push_back({"SoftmaxLossGradWeighted",
                    ops::SoftmaxLossGrad{{}, 0.1f, {.gamma = 1.5f}},
                    {p.Wide(), labels, loss, weights},
                    {x}});
  cases->push_back({"EuclideanLoss", ops::EuclideanLoss{}, {x, x.Wide()}, {loss}});
  cases->push_back({"EuclideanLossGrad", ops::EuclideanLossGrad{-1}, {x, x.Wide(), loss}, {x}});
  for (const int k : {1, 3}) {
    ops::Accuracy op{1, k, std::nullopt};
    cases->push_back({StrCat("Accuracy", k), op, {x, labels}, {loss, T({7})}});
    op.ignore_label = 1;
    cases->push_back({StrCat("AccuracyIgnore", k), op, {x, labels}, {loss}});
  }
}

}  // namespace

CaseOperand T(std::vector<int64_t> dims) {
  CaseOperand operand;
  operand.shape = Shape(std::move(dims));
  return operand;
}

CaseOperand Absent() {
  CaseOperand operand;
  operand.is_present = false;
  operand.shape = Shape{0};
  return operand;
}

std::vector<DType> OpCase::DTypes() const {
  if (op.numeric_rule() == NumericRule::kFloat) return {DType::kDouble, DType::kFloat};
  return {DType::kDouble, DType::kFloat, DType::kFloat16, DType::kBFloat16};
}

bool OpCase::CanAccumulate() const {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (accumulates.contains(i)) return true;
  }
  return false;
}

std::vector<Layout> OpCase::Layouts() const {
  const LayoutRule rule = op.layout_rule();
  bool any = false;
  const auto allows = [&](const std::vector<CaseOperand>& operands, OperandSet followers) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].is_present || !followers.contains(i)) continue;
      if (operands[i].shape.num_axes() != 4) return false;
      any = true;
    }
    return true;
  };
  const bool allowed = allows(inputs, rule.inputs) && allows(outputs, rule.outputs) && any;
  if (!allowed) return {Layout::kPlain};
  return {Layout::kPlain, Layout::kChannelsLast};
}

const std::vector<OpCase>& OpCases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> list;
    AddConvCases(&list);
    AddConvPairCases(&list);
    AddGemmCases(&list);
    AddPoolCases(&list);
    AddNormCases(&list);
    AddPointwiseCases(&list);
    AddMoveCases(&list);
    AddLossCases(&list);
    AddActivationCases(&list);
    AddArrangeCases(&list);
    AddImageCases(&list);
    AddLabelLossCases(&list);
    AddLongCases(&list);
    AddReduceCases(&list);
    AddRegionCases(&list);
    AddSamplingCases(&list);
    AddTermLossCases(&list);
    AddYoloLossCases(&list);
    AddUpdateCases(&list);
    return list;
  }();
  return cases;
}

CaseData MakeData(const OpCase& test, DType dtype) {
  CaseData data;
  for (const CaseOperand& input : test.inputs) {
    data.inputs.push_back(Draw(input, dtype, data.inputs.size(), data.inputs));
  }
  for (const CaseOperand& output : test.outputs) {
    data.outputs.push_back(Draw(output, dtype, 100 + data.outputs.size(), {}));
  }
  return data;
}

std::vector<DeviceKind> BuiltDevices() {
  std::vector<DeviceKind> kinds;
  for (const DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    if (IsDeviceBuilt(kind)) kinds.push_back(kind);
  }
  return kinds;
}

std::string TitleOf(DeviceKind kind) {
  return kind == DeviceKind::kCpu ? "Cpu" : "Cuda";
}

Device* DeviceOrNull(DeviceKind kind) {
  static std::map<DeviceKind, std::shared_ptr<Device>> devices;
  if (!IsDeviceBuilt(kind)) return nullptr;
  const auto [entry, is_new] = devices.try_emplace(kind);
  if (is_new) {
    try {
      entry->second = MakeDevice(kind);
    } catch (const DeviceError& error) {
      std::printf("no %s device here: %s\n", Name(kind).data(), error.what());
    }
  }
  return entry->second.get();
}

std::optional<CaseResult> RunCase(const OpCase& test, Device& device,
                                  const KernelCandidate& candidate, DType dtype, Layout layout,
                                  bool accumulates, const CaseData& data, int runs,
                                  std::string* refusal) {
  const DType compute = dtype == DType::kDouble ? dtype : DType::kFloat;
  if (!candidate.Serves({dtype, compute}) || !Fuses(candidate, test.op)) {
    if (refusal != nullptr) *refusal = "does not declare it";
    return std::nullopt;
  }
  const LayoutRule rule = test.op.layout_rule();
  return Run(test, device, candidate, DescribeAll(test.inputs, rule.inputs, dtype, layout),
             DescribeAll(test.outputs, rule.outputs, dtype, layout), accumulates, data, runs,
             refusal);
}

std::optional<CaseSpeed> MeasureCase(const OpCase& test, Device& device,
                                     const KernelCandidate& candidate, DType dtype, Layout layout) {
  constexpr double kSeconds = 0.05;
  const LayoutRule rule = test.op.layout_rule();
  const auto in = DescribeAll(test.inputs, rule.inputs, dtype, layout);
  const auto out = DescribeAll(test.outputs, rule.outputs, dtype, layout);
  if (!candidate.Serves({dtype, dtype == DType::kDouble ? dtype : DType::kFloat}) ||
      !Fuses(candidate, test.op)) {
    return std::nullopt;
  }
  std::optional<Kernel> kernel = MakeKernel(test, device, candidate, in, out, {}, nullptr);
  if (!kernel) return std::nullopt;
  PreparedCase prepared(test, device, std::move(*kernel), in, out);
  prepared.SetInputs(RepeatedData(test.inputs, dtype));
  prepared.SetOutputs(RepeatedData(test.outputs, dtype));
  prepared.Run();
  Stream& stream = device.compute_stream();
  const auto start = device.MakeEvent(), stop = device.MakeEvent();
  CaseSpeed speed;
  for (int runs = 1;; runs *= 4) {
    stream.Record(*start);
    for (int run = 0; run < runs; ++run) prepared.Run();
    stream.Record(*stop);
    stop->Synchronize();
    speed.seconds = std::max(stop->SecondsSince(*start) / runs, 1e-9);
    if (speed.seconds * runs >= kSeconds) break;
  }
  for (const auto* operands : {&in, &out}) {
    for (const OperandDesc& operand : *operands) {
      if (operand.present) speed.bytes += static_cast<double>(operand.bytes());
    }
  }
  speed.flops = test.op.Flops(std::vector<TensorDesc>(in.begin(), in.end()),
                              std::vector<TensorDesc>(out.begin(), out.end()));
  return speed;
}

std::vector<Elements> RunReference(const OpCase& test, bool accumulates, const CaseData& data) {
  std::vector<OperandDesc> in, out;
  for (const CaseOperand& x : test.inputs)
    in.push_back(Describe(x, DType::kDouble, x.layout.value_or(Layout::kPlain)));
  for (const CaseOperand& y : test.outputs)
    out.push_back(Describe(y, DType::kDouble, y.layout.value_or(Layout::kPlain)));
  for (auto* operands : {&in, &out}) {
    for (OperandDesc& desc : *operands) {
      if (desc.dtype != DType::kUInt8) desc.dtype = DType::kDouble;
    }
  }
  const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCpu, test.op.type());
  const std::optional<CaseResult> result =
      Run(test, *DeviceOrNull(DeviceKind::kCpu), candidates.back(), in, out, accumulates, data, 1,
          nullptr);
  if (!result) throw std::runtime_error(candidates.back().name + " refuses double");
  return result->outputs;
}

DType CoarsestType(const OpCase& test, DType dtype) {
  const auto rank = [](DType type) {
    return type == DType::kDouble ? 0 : type == DType::kFloat ? 1 : type == DType::kFloat16 ? 2 : 3;
  };
  DType coarsest = dtype;
  for (const CaseOperand& output : test.outputs) {
    if (rank(TypeOf(output, dtype)) > rank(coarsest)) coarsest = TypeOf(output, dtype);
  }
  return coarsest;
}

}  // namespace caffe::testing
