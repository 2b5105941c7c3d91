#include "caffe/solvers/bound_op.hpp"

#include "caffe/error.hpp"

namespace caffe {
namespace {

std::vector<OperandDesc> Describe(const std::vector<SyncedTensor*>& tensors) {
  std::vector<OperandDesc> operands;
  for (const SyncedTensor* tensor : tensors) operands.push_back({tensor->desc(), true});
  return operands;
}

}  // namespace

BoundOp::BoundOp(const std::string& where, std::shared_ptr<Device> device, Op op,
                 std::vector<SyncedTensor*> inputs, std::vector<SyncedTensor*> outputs)
    : device_(std::move(device)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  const std::vector<OperandDesc> reads = Describe(inputs_), writes = Describe(outputs_);
  std::string tried;
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(device_->kind(), op.type())) {
    KernelOrRefusal answer = candidate.factory({op, reads, writes, *device_});
    if (Kernel* kernel = std::get_if<Kernel>(&answer)) {
      kernel_ = std::move(*kernel);
      break;
    }
    tried += "; " + candidate.name + ": " + std::get<Refusal>(answer).reason;
  }
  if (!kernel_.run) {
    throw Unsupported(StrCat(where, ": no kernel for ", op.name(), " on ", Name(device_->kind()),
                             tried.empty() ? "; this build has none" : tried));
  }
  if (kernel_.workspace_bytes > 0) workspace_ = device_->Allocate(kernel_.workspace_bytes);
  input_views_.resize(inputs_.size());
  output_views_.resize(outputs_.size());
}

void BoundOp::Run(bool accumulate) {
  // Asked for anew each time: a tensor's owner may have shared or written it since.
  for (size_t i = 0; i < inputs_.size(); ++i) input_views_[i] = inputs_[i]->View();
  for (size_t i = 0; i < outputs_.size(); ++i) output_views_[i] = outputs_[i]->View();
  KernelContext context;
  context.inputs = input_views_;
  context.outputs = output_views_;
  context.workspace = workspace_.get();
  context.accumulate_mask = accumulate ? ~0u : 0u;
  kernel_.run(context);
  for (SyncedTensor* output : outputs_) output->MarkWritten();
}

}  // namespace caffe
