#include "caffe/solvers/weight_average.hpp"

#include <glog/logging.h>

#include <exception>

#include "caffe/error.hpp"
#include "caffe/solvers/find_kernel.hpp"

namespace caffe {
namespace {

std::vector<SyncedTensor*> TensorsOf(const std::vector<Net::LearnableParam>& parameters) {
  std::vector<SyncedTensor*> tensors;
  for (const Net::LearnableParam& param : parameters) tensors.push_back(&param.blob->data_tensor());
  return tensors;
}

// Copies fail only if the device is lost; then nothing can be trained or written any more.
template <typename Work>
void TryTo(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    LOG(ERROR) << "solver: the parameters could not be put back in the place of their average: "
               << error.what();
  }
}

}  // namespace

WeightAverage::WeightAverage(const TrainingNet& net,
                             const std::vector<Net::LearnableParam>& parameters, double decay,
                             bool is_decided)
    : average_(net.device(), net.graph(), TensorsOf(parameters)),
      kept_(net.device(), net.graph(), TensorsOf(parameters)),
      inputs_(average_.bound()) {
  if (inputs_.empty()) return;
  std::vector<OperandDesc> inputs, outputs;
  for (const TensorView& view : average_.places()) outputs.push_back(Present(view));
  inputs = outputs;
  const auto numbers = [](int count) {
    return Present(TensorDesc{Shape{static_cast<int64_t>(count)}, DType::kDouble});
  };
  inputs.push_back(numbers(ops::kStepNumbers));
  inputs.push_back(numbers(ops::DecideStep::kStateNumbers));
  inputs.push_back(is_decided ? numbers(ops::kFirstRate) : Absent());
  kernel_ = FindKernel(ops::AverageAll{decay}, inputs, outputs, net.graph());
  inputs_.resize(inputs.size());
}

bool WeightAverage::Bind() {
  average_.Bind();
  bool has_moved = false;
  for (size_t i = 0; i < average_.bound().size(); ++i) {
    has_moved |= inputs_[i].data != average_.bound()[i].data;
    inputs_[i] = average_.bound()[i];
  }
  return has_moved;
}

void WeightAverage::Launch(const TensorView& step, const TensorView& state,
                           const TensorView& decision, Stream& stream) {
  if (average_.places().empty()) return;
  const size_t count = average_.places().size();
  inputs_[count] = step;
  inputs_[count + 1] = state;
  inputs_[count + 2] = decision;
  KernelContext context;
  context.inputs = inputs_;
  context.outputs = average_.places();
  context.stream = &stream;
  kernel_.run(context);
}

void WeightAverage::Begin(double updates, double skipped_steps) {
  average_.Gather();
  count_ = updates + skipped_steps;
  has_begun_ = true;
}

WeightAverage::Shown::Shown(WeightAverage* average)
    : average_(average != nullptr && average->has_begun_ ? average : nullptr) {
  if (average_ == nullptr) return;
  CAFFE_ASSERT(!average_->is_shown_, "the average is shown already");
  average_->kept_.Gather();
  average_->average_.Scatter();
  average_->is_shown_ = true;
}

WeightAverage::Shown::~Shown() {
  if (average_ == nullptr) return;
  average_->is_shown_ = false;
  TryTo([&] { average_->kept_.Scatter(); });
}

WeightAverage::Hidden::Hidden(WeightAverage* average)
    : average_(average != nullptr && average->is_shown_ ? average : nullptr) {
  if (average_ == nullptr) return;
  average_->kept_.Scatter();
  average_->is_shown_ = false;
}

WeightAverage::Hidden::~Hidden() {
  if (average_ == nullptr) return;
  average_->is_shown_ = true;
  TryTo([&] { average_->average_.Scatter(); });
}

std::vector<std::shared_ptr<Blob>> CopiesOfParameters(const Net& net) {
  std::vector<std::shared_ptr<Blob>> copies;
  for (const Net::LearnableParam& param : net.learnable_params()) {
    const DType dtype = param.blob->data_tensor().desc().dtype;
    copies.push_back(std::make_shared<Blob>(param.blob->shape(), dtype));
    copies.back()->CopyFrom(*param.blob);
  }
  return copies;
}

}  // namespace caffe
