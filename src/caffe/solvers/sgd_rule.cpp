// Stochastic gradient descent with momentum.
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/ops/update.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solvers/bound_op.hpp"

namespace caffe {
namespace {

ops::Regularization RegularizationOf(const SolverParameter& param) {
  const std::string& type = param.regularization_type();
  if (type == "L2") return ops::Regularization::kL2;
  if (type == "L1") return ops::Regularization::kL1;
  if (type == "WD" || type == "L2_unitary") {
    throw Unsupported("solver: regularization_type " + type +
                      " is not in this build; use L2 or L1");
  }
  throw InvalidArgument("solver: regularization_type '" + type + "' is unknown; use L2 or L1");
}

class SGDRule final : public UpdateRule {
 public:
  explicit SGDRule(const SolverParameter& param)
      : UpdateRule(param), regularization_(RegularizationOf(param)) {}

  void Prepare(const Net& net, const std::vector<std::shared_ptr<Blob>>& history) override {
    const std::shared_ptr<Device>& device = net.graph().options.device;
    scalars_ = std::make_unique<SyncedTensor>(device);
    scalars_->Reset({Shape{4}, DType::kDouble, Layout::kPlain});
    steps_.clear();
    const auto& params = net.learnable_params();
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i].lr_mult == 0) continue;
      const Blob& blob = *params[i].blob;
      const ops::SgdUpdate op{.regularization = regularization_,
                              .lr_mult = params[i].lr_mult,
                              .decay_mult = params[i].decay_mult};
      steps_.emplace_back("solver: parameter '" + params[i].name + "'", device, op,
                          std::vector{&blob.diff_tensor(), scalars_.get()},
                          std::vector{&blob.data_tensor(), &history[i]->data_tensor()});
    }
  }

  void Update(const UpdateScalars& scalars) override {
    double* values = scalars_->mutable_host<double>();
    values[0] = scalars.rate;
    values[1] = scalars.momentum;
    values[2] = scalars.weight_decay;
    values[3] = scalars.gradient_scale;
    for (BoundOp& step : steps_) step.Run();
  }

 private:
  ops::Regularization regularization_;
  std::unique_ptr<SyncedTensor> scalars_;
  std::vector<BoundOp> steps_;
};

REGISTER_SOLVER_CLASS(SGD);

}  // namespace
}  // namespace caffe
