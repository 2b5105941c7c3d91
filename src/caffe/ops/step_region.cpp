#include "caffe/ops/step_region.hpp"

#include <algorithm>
#include <memory>

#include "caffe/ops/convert.hpp"
#include "caffe/ops/fused_in_turn.hpp"

namespace caffe::ops {
namespace {

// Where every library can begin to read.
size_t Aligned(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// The part of iteration `i`, or of a step, in a tensor of all steps.
void* PartAt(const TensorView& all, const OperandDesc& part, int64_t i) {
  return all.as<char>() + static_cast<int64_t>(part.bytes()) * i;
}

int64_t StepOf(const Recurrence& sizes, bool is_gradient, int64_t iteration) {
  return sizes.reverse != is_gradient ? sizes.steps - 1 - iteration : iteration;
}

// A kernel whose operands are in other memory in each iteration.
class IteratedKernel {
 public:
  IteratedKernel(Kernel kernel, std::vector<StepTensor> inputs, std::vector<StepTensor> outputs)
      : kernel_(kernel.packed_weights ? PackingItself(std::move(kernel)) : std::move(kernel)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {
    for (const StepTensor& tensor : inputs_)
      static_cast<TensorDesc&>(input_views_.emplace_back()) = tensor.desc;
    for (const StepTensor& tensor : outputs_)
      static_cast<TensorDesc&>(output_views_.emplace_back()) = tensor.desc;
  }

  size_t workspace_bytes() const { return kernel_.workspace_bytes; }

  // The kernel's workspace begins `offset` bytes after the node's.
  void Run(const KernelContext& whole, int64_t iteration, size_t offset) {
    for (size_t i = 0; i < inputs_.size(); ++i)
      input_views_[i].data = inputs_[i].at(whole, iteration);
    for (size_t i = 0; i < outputs_.size(); ++i)
      output_views_[i].data = outputs_[i].at(whole, iteration);
    KernelContext ctx = whole;
    ctx.inputs = input_views_;
    ctx.outputs = output_views_;
    ctx.accumulated = {};
    ctx.workspace = static_cast<char*>(whole.workspace) + offset;
    kernel_.run(ctx);
  }

 private:
  Kernel kernel_;
  std::vector<StepTensor> inputs_, outputs_;
  std::vector<TensorView> input_views_, output_views_;
};

std::vector<OperandDesc> DescsOf(const std::vector<StepTensor>& tensors) {
  std::vector<OperandDesc> descs;
  for (const StepTensor& tensor : tensors) descs.push_back(tensor.desc);
  return descs;
}

// The kernels of a node: what is copied before and after, and the step.
struct Iterations {
  int64_t count = 0;
  size_t offset = 0;  // of the kernels' workspace
  std::vector<IteratedKernel> before, step, after;

  size_t workspace_bytes() const {
    size_t most = 0;
    for (const auto* kernels : {&before, &step, &after}) {
      for (const IteratedKernel& kernel : *kernels) most = std::max(most, kernel.workspace_bytes());
    }
    return offset + most;
  }
  void Run(const KernelContext& ctx) {
    for (IteratedKernel& kernel : before) kernel.Run(ctx, 0, offset);
    for (int64_t i = 0; i < count; ++i) {
      for (IteratedKernel& kernel : step) kernel.Run(ctx, i, offset);
    }
    for (IteratedKernel& kernel : after) kernel.Run(ctx, count - 1, offset);
  }
};

}  // namespace

OperandDesc StepRegion::Rows(int64_t columns, DType type) const {
  OperandDesc desc;
  desc.shape = Shape{sizes_.items, columns};
  desc.dtype = type;
  return desc;
}

StepTensor StepRegion::InWorkspace(const OperandDesc& desc, int64_t copies) {
  const size_t offset = workspace_bytes_, bytes = Aligned(desc.bytes());
  workspace_bytes_ += bytes * static_cast<size_t>(copies);
  return {desc, [=](const KernelContext& ctx, int64_t iteration) -> void* {
            return static_cast<char*>(ctx.workspace) + offset +
                   bytes * static_cast<size_t>(iteration % copies);
          }};
}

StepTensor StepRegion::Input(int input) const {
  const OperandDesc& all = request_.inputs[input];
  const int64_t all_rows = std::max<int64_t>(sizes_.steps * sizes_.items, 1);
  const OperandDesc rows = Rows(all.count() / all_rows, all.dtype);
  return {rows, [=, sizes = sizes_, back = is_gradient_](const KernelContext& ctx, int64_t i) {
            return PartAt(ctx.input(input), rows, StepOf(sizes, back, i));
          }};
}

StepTensor StepRegion::Output(int output, int64_t columns, DType type) {
  if (!has_output(output)) return InWorkspace(Rows(columns, type), 2);
  const OperandDesc rows = Rows(columns, request_.outputs[output].dtype);
  return {rows, [=, sizes = sizes_, back = is_gradient_](const KernelContext& ctx, int64_t i) {
            return PartAt(ctx.output(output), rows, StepOf(sizes, back, i));
          }};
}

StepTensor StepRegion::Whole(int input) const {
  OperandDesc desc = request_.inputs[input];
  desc.may_be_packed = desc.is_last_read = false;
  return {desc, [=](const KernelContext& ctx, int64_t) { return ctx.input(input).data; }};
}

StepTensor StepRegion::Cont(int input) {
  OperandDesc numbers = Rows(1, wide());
  numbers.shape = Shape{sizes_.items};
  const StepTensor ones = InWorkspace(numbers, 1);
  copies_.push_back({{}, ones, 1.0, false});
  if (!has_input(input)) return ones;
  OperandDesc all = numbers;
  all.shape = Shape{sizes_.steps * sizes_.items};
  const StepTensor given = Initial(input, all);
  return {numbers,
          [=, sizes = sizes_, back = is_gradient_](const KernelContext& ctx, int64_t i) -> void* {
            const int64_t step = StepOf(sizes, back, i) + (sizes.reverse ? 1 : 0);
            if (step == sizes.steps) return ones.at(ctx, i);
            return static_cast<char*>(given.at(ctx, i)) +
                   static_cast<size_t>(step) * numbers.bytes();
          }};
}

StepTensor StepRegion::Initial(int input, const OperandDesc& desc) {
  const StepTensor initial = InWorkspace(desc, 1);
  std::vector<StepTensor> from;
  if (has_input(input)) {
    from.push_back(Whole(input));
    from[0].desc.shape = desc.shape;
  }
  copies_.push_back({from, initial, 0.0, false});
  return initial;
}

StepTensor StepRegion::Before(const StepTensor& states, int initial) {
  const StepTensor first = Initial(initial, states.desc);
  const int64_t first_iteration = is_gradient_ ? sizes_.steps - 1 : 0;
  const int64_t before = is_gradient_ ? 1 : -1;
  return {states.desc, [=](const KernelContext& ctx, int64_t i) {
            return i == first_iteration ? first.at(ctx, i) : states.at(ctx, i + before);
          }};
}

std::pair<StepTensor, StepTensor> StepRegion::Carried(int64_t columns, DType type, int initial) {
  const StepTensor first = Initial(initial, Rows(columns, type));
  const StepTensor written = InWorkspace(first.desc, 2);
  const StepTensor read = {first.desc, [=](const KernelContext& ctx, int64_t i) {
                             return i == 0 ? first.at(ctx, i) : written.at(ctx, i - 1);
                           }};
  return {read, written};
}

void StepRegion::KeepLast(const StepTensor& tensor, int output) {
  if (!has_output(output)) return;
  OperandDesc desc = request_.outputs[output];
  desc.shape = tensor.desc.shape;
  const StepTensor to = {
      desc, [=](const KernelContext& ctx, int64_t) { return ctx.output(output).data; }};
  copies_.push_back({{tensor}, to, 0.0, true});
}

Fused::Place StepRegion::Reads(const StepTensor& tensor, DType type) {
  inputs_.push_back(tensor);
  const Fused::Place read = Fused::Input(static_cast<int>(inputs_.size()) - 1);
  if (tensor.desc.dtype == type) return read;
  const Fused::Place converted = Inner(tensor.desc.shape, type);
  Add(Cast{}, {read}, {converted});
  return converted;
}

Fused::Place StepRegion::Writes(const StepTensor& tensor, DType type) {
  outputs_.push_back(tensor);
  const Fused::Place written = Fused::Output(static_cast<int>(outputs_.size()) - 1);
  if (tensor.desc.dtype == type) return written;
  const Fused::Place other = Inner(tensor.desc.shape, type);
  last_members_.push_back({Cast{}, {other}, {written}});
  return other;
}

Fused::Place StepRegion::Inner(int64_t columns, DType type) {
  return Inner(Shape{sizes_.items, columns}, type);
}

Fused::Place StepRegion::Inner(const Shape& shape, DType type) {
  region_.inner.push_back({.shape = shape, .dtype = type});
  return Fused::Inner(static_cast<int>(region_.inner.size()) - 1);
}

void StepRegion::Add(Op op, Tensors inputs, Tensors outputs) {
  region_.members.push_back({std::move(op), std::move(inputs), std::move(outputs)});
}

DType StepRegion::TypeOf(const Fused::Place& place) const {
  const auto i = static_cast<size_t>(place.index);
  if (place.kind == Fused::Place::Kind::kInput) return inputs_[i].desc.dtype;
  if (place.kind == Fused::Place::Kind::kOutput) return outputs_[i].desc.dtype;
  return *region_.inner[i].dtype;
}

void StepRegion::Replace(const Fused::Place& from, const Fused::Place& to) {
  for (Fused::Member& member : region_.members) {
    std::ranges::replace(member.inputs, from, to);
    std::ranges::replace(member.outputs, from, to);
  }
}

void StepRegion::DropCopies() {
  using Kind = Fused::Place::Kind;
  std::vector<Fused::Member>& members = region_.members;
  for (size_t i = 0; i < members.size();) {
    const bool is_copy = members[i].op.As<Cast>() != nullptr &&
                         TypeOf(members[i].inputs[0]) == TypeOf(members[i].outputs[0]);
    const Fused::Place from = is_copy ? members[i].inputs[0] : Fused::Place();
    const Fused::Place to = is_copy ? members[i].outputs[0] : Fused::Place();
    if (to.kind != Kind::kInner && from.kind != Kind::kInner) {
      ++i;
      continue;
    }
    members.erase(members.begin() + static_cast<ptrdiff_t>(i));
    // An inner tensor becomes the other one of the two.
    if (to.kind == Kind::kInner) {
      Replace(to, from);
    } else {
      Replace(from, to);
    }
  }
}

KernelOrRefusal StepRegion::Finish() {
  if (sizes_.steps * sizes_.items * sizes_.width == 0) return Refusal{"no rows"};
  for (Fused::Member& member : last_members_) region_.members.push_back(std::move(member));
  DropCopies();
  auto iterations = std::make_shared<Iterations>();
  iterations->count = sizes_.steps;
  iterations->offset = workspace_bytes_;
  std::optional<Refusal> refusal;
  const auto bind = [&](const Fused& ops, const std::vector<StepTensor>& inputs,
                        const std::vector<StepTensor>& outputs, std::vector<IteratedKernel>* to) {
    const std::vector<OperandDesc> in = DescsOf(inputs), out = DescsOf(outputs);
    const Op op(ops);
    KernelOrRefusal answer = MakeInTurn(ops, {op, in, out, request_.device, request_.settings});
    if (std::holds_alternative<Refusal>(answer)) {
      refusal = std::get<Refusal>(answer);
    } else {
      to->emplace_back(std::move(std::get<Kernel>(answer)), inputs, outputs);
    }
  };
  bind(region_, inputs_, outputs_, &iterations->step);
  for (const Copy& copy : copies_) {
    Fused one;
    if (copy.from.empty()) {
      one.members.push_back({Fill{copy.value}, {}, {Fused::Output(0)}});
    } else {
      one.members.push_back({Cast{}, {Fused::Input(0)}, {Fused::Output(0)}});
    }
    bind(one, copy.from, {copy.to}, copy.is_last ? &iterations->after : &iterations->before);
  }
  if (refusal) return *refusal;
  return Kernel{"", [iterations](const KernelContext& ctx) { iterations->Run(ctx); },
                iterations->workspace_bytes()};
}

}  // namespace caffe::ops
