#include "caffe/solvers/clip.hpp"

#include <glog/logging.h>

#include <cmath>

#include "caffe/graph/graph.hpp"
#include "caffe/ops/update.hpp"

namespace caffe {

GradientClipper::GradientClipper(const Net& net, double limit) : limit_(limit) {
  if (limit < 0) return;
  const std::shared_ptr<Device>& device = net.graph().options.device;
  sum_ = std::make_unique<SyncedTensor>(device);
  sum_->Reset({Shape{1}, DType::kDouble, Layout::kPlain});
  for (const Net::LearnableParam& param : net.learnable_params()) {
    if (!param.has_gradient) continue;
    steps_.emplace_back("clip_gradients: parameter '" + param.name + "'", device,
                        ops::SumOfSquares{}, std::vector{&param.blob->diff_tensor()},
                        std::vector{sum_.get()});
  }
}

double GradientClipper::Factor() {
  if (limit_ < 0 || steps_.empty()) return 1;
  for (size_t i = 0; i < steps_.size(); ++i) steps_[i].Run(/*accumulate=*/i > 0);
  const double norm = std::sqrt(*sum_->host<double>());
  if (!(norm > limit_)) return 1;
  const double factor = limit_ / norm;
  LOG(INFO) << "Gradient clipping: scaling down gradients (L2 norm " << norm << " > " << limit_
            << ") by scale factor " << factor;
  return factor;
}

}  // namespace caffe
