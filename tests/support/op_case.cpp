#include "tests/support/op_case.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <stdexcept>

#include "caffe/core/philox.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

DType TypeOf(const CaseOperand& operand, DType dtype) {
  if (operand.dtype) return *operand.dtype;
  return operand.is_wide && dtype != DType::kDouble ? DType::kFloat : dtype;
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
  desc.is_constant = operand.is_constant;
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

// The context of a pass for its kernels; on a device that replays its work, entirely in its memory.
// Kernels must not rely on a workspace's contents.
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

// A kernel and the operands of a case for it.
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
  // Rounding to TF32 is allowed by default, but its errors are far above the tolerance for floats.
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

std::vector<OperandDesc> DescribeAll(const std::vector<CaseOperand>& operands, OperandSet followers,
                                     DType dtype, Layout layout) {
  std::vector<OperandDesc> descs;
  for (size_t i = 0; i < operands.size(); ++i) {
    descs.push_back(Describe(operands[i], dtype, LayoutOf(operands[i], followers, i, layout)));
  }
  return descs;
}

// A few drawn values, repeated: large operands that do not take long to create.
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
    AddFormulaCases(&list);
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
    AddAttentionCases(&list);
    AddBoxLossCases(&list);
    AddRecurrenceCases(&list);
    AddReduceCases(&list);
    AddRegionCases(&list);
    AddSamplingCases(&list);
    AddSoftLabelCases(&list);
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
  if (!candidate.Serves(test.op, {dtype, compute})) {
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
  const DType compute = dtype == DType::kDouble ? dtype : DType::kFloat;
  if (!candidate.Serves(test.op, {dtype, compute})) return std::nullopt;
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
