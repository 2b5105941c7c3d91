#include "caffe/plan/weight_parts.hpp"

#include <algorithm>

#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

constexpr int64_t kPart = 1 << 20;  // numbers that are in memory at a time, about

// Runs a step's kernel on some numbers.
void RunOn(const Program::Step& step, KernelContext context, TensorView from, TensorView to) {
  context.inputs = {&from, 1};
  context.outputs = {&to, 1};
  step.kernel.run(context);
}

TensorView Numbers(int64_t count, DType dtype, void* data) {
  TensorView view;
  view.shape = Shape{count};
  view.dtype = dtype;
  view.data = data;
  return view;
}

}  // namespace

WeightParts::WeightParts(const Program& program, const Bindings& bindings, size_t copy)
    : program_(program), copy_(copy) {
  const Program::Copy& what = program.copies[copy];
  if (!program.device->is_host_accessible()) return;
  if (!what.is_cast && !step().kernel.row_packing) return;
  if (what.sources.size() == 1 && program.frees_unread_copies &&
      program.copies[what.sources[0]].is_cast && !program.copies[what.sources[0]].is_read) {
    cast_ = what.sources[0];
  } else if (!what.sources.empty()) {
    return;
  }
  const int weights = cast_ < 0 ? step().inputs[0] : program.steps[cast_].inputs[0];
  const Program::Tensor& tensor = program.tensors[weights];
  const SyncedTensor& stored = *bindings[weights];
  if (tensor.bound_offset != 0 || tensor.desc.count() != stored.desc().count()) return;
  origin_ = stored.AbsentFrom();
  if (origin_ && !origin_->reads_parts()) origin_ = nullptr;
}

void WeightParts::Make(const KernelContext& whole) const {
  step().kernel.row_packing ? Pack(whole) : Cast(whole);
}

void WeightParts::Cast(const KernelContext& whole) const {
  const TensorView &from = whole.input(0), &to = whole.output(0);
  const int64_t count = to.count();
  const auto part =
      program_.device->Allocate(static_cast<size_t>(std::min(kPart, count)) * SizeOf(from.dtype));
  for (int64_t first = 0; first < count; first += kPart) {
    const int64_t numbers = std::min(kPart, count - first);
    origin_->Read(first, numbers, from.dtype, part.get());
    RunOn(
        step(), whole, Numbers(numbers, from.dtype, part.get()),
        Numbers(numbers, to.dtype, to.as<char>() + first * static_cast<int64_t>(SizeOf(to.dtype))));
  }
}

void WeightParts::Pack(const KernelContext& whole) const {
  const RowPacking& packing = *step().kernel.row_packing;
  const TensorDesc& packed = program_.tensors[step().inputs[0]].desc;
  const DType stored =
      cast_ < 0 ? packed.dtype : program_.tensors[program_.steps[cast_].inputs[0]].desc.dtype;
  const int64_t rows = packed.shape[0], width = packed.shape.count(1);
  const int64_t units = kPart / std::max<int64_t>(width * packing.unit, 1);
  const int64_t at_once = std::min(rows, std::max<int64_t>(units, 1) * packing.unit);
  const auto numbers = static_cast<size_t>(at_once * width);
  Device& device = *program_.device;
  const auto read = device.Allocate(numbers * SizeOf(stored));
  const auto cast = cast_ < 0 ? read : device.Allocate(numbers * SizeOf(packed.dtype));
  const auto workspace = device.Allocate(packing.workspace_bytes);
  for (int64_t first = 0; first < rows; first += at_once) {
    const int64_t count = std::min(at_once, rows - first);
    origin_->Read(first * width, count * width, stored, read.get());
    if (cast_ >= 0) {
      RunOn(program_.steps[cast_], whole, Numbers(count * width, stored, read.get()),
            Numbers(count * width, packed.dtype, cast.get()));
    }
    packing.pack(cast.get(), first, count, whole.output(0).data, workspace.get());
  }
}

}  // namespace caffe
