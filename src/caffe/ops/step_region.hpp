// StepRegion: a region of ordinary ops that runs once for each step of a recurrence.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "caffe/ops/fused.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/recurrence.hpp"

namespace caffe::ops {

// A tensor of the region, and its memory in an iteration.
struct StepTensor {
  OperandDesc desc;
  std::function<void*(const KernelContext& ctx, int64_t iteration)> at;
};

// Collects the tensors and the ops of a step, then makes the kernel for all steps. Iterations are
// the steps in the order in which they run; for a gradient, the other way round.
class StepRegion {
 public:
  // `request`: for the node of all steps. Its input 0 has the type of the data.
  StepRegion(const Recurrence& sizes, bool is_gradient, const KernelRequest& request)
      : sizes_(sizes), is_gradient_(is_gradient), request_(request) {}

  DType type() const { return request_.inputs[0].dtype; }
  // The type of everything that must not have 16 bits.
  DType wide() const { return type() == DType::kDouble ? type() : DType::kFloat; }
  bool has_input(int i) const {
    return i >= 0 && static_cast<size_t>(i) < request_.inputs.size() && request_.inputs[i].present;
  }

  // A tensor with one part for each step: an input, or an output of `columns` columns, for which
  // the workspace has memory if the node does not have it.
  StepTensor Input(int input) const;
  StepTensor Output(int output, int64_t columns, DType type);
  // An input that is the same in each step.
  StepTensor Whole(int input) const;
  // The numbers that scale what a step reads: of this input, or 1.
  StepTensor Cont(int input);
  // A state as the step reads it: `states` of the step before, or the input `initial` for the
  // first one.
  StepTensor Before(const StepTensor& states, int initial);
  // A tensor (N,columns) that an iteration leaves to the next: as it is read, which for the first
  // is the input `initial`, and as it is written.
  std::pair<StepTensor, StepTensor> Carried(int64_t columns, DType type, int initial);
  // Gives the output of the node what `tensor` is after the last iteration.
  void KeepLast(const StepTensor& tensor, int output);

  // Adds an op, which runs after those before it. Tensors are those above and Inner().
  using Tensors = std::vector<Fused::Place>;
  void Add(Op op, Tensors inputs, Tensors outputs);
  // The place that an op reads or writes in this type; the tensor itself may have another one.
  Fused::Place Reads(const StepTensor& tensor, DType type);
  Fused::Place Writes(const StepTensor& tensor, DType type);
  // A tensor (N,columns) between ops of the step.
  Fused::Place Inner(int64_t columns, DType type);

  KernelOrRefusal Finish();

 private:
  Fused::Place Inner(const Shape& shape, DType type);
  // A tensor that is copied or filled before the first iteration or after the last one.
  struct Copy {
    std::vector<StepTensor> from;  // none: `value`
    StepTensor to;
    double value;
    bool is_last;
  };

  bool has_output(int i) const {
    return static_cast<size_t>(i) < request_.outputs.size() && request_.outputs[i].present;
  }
  OperandDesc Rows(int64_t columns, DType type) const;
  DType TypeOf(const Fused::Place& place) const;
  void Replace(const Fused::Place& from, const Fused::Place& to);
  // Removes conversions between equal types, as there are many where data is not in 16 bits.
  void DropCopies();
  // `copies` tensors in the workspace, which iterations take in turn.
  StepTensor InWorkspace(const OperandDesc& desc, int64_t copies);
  // The input in this form, or 0; ready before the first iteration.
  StepTensor Initial(int input, const OperandDesc& desc);

  const Recurrence sizes_;
  const bool is_gradient_;
  const KernelRequest& request_;
  size_t workspace_bytes_ = 0;
  std::vector<Copy> copies_;
  Fused region_;
  std::vector<Fused::Member> last_members_;  // convert what was written in another type
  std::vector<StepTensor> inputs_, outputs_;
};

}  // namespace caffe::ops
