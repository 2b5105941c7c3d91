#include "caffe/solvers/debug_info.hpp"

#include <glog/logging.h>

#include <cmath>

#include "caffe/graph/graph.hpp"

namespace caffe {
namespace {

double Mean(double sum, const Blob& blob) {
  return blob.count() == 0 ? 0 : sum / static_cast<double>(blob.count());
}

}  // namespace

void LogForwardValues(const Net& net) {
  const auto& calls = net.graph().calls;
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string& layer = net.layer_names()[i];
    for (const Value* top : calls[i].tops) {
      const Blob& blob = *net.blob_by_name(top->name);
      LOG(INFO) << "    [Forward] Layer " << layer << ", top blob " << top->name
                << " data: " << Mean(blob.asum_data(), blob);
    }
    const auto& params = net.layer_params(static_cast<int>(i));
    for (size_t k = 0; k < params.size(); ++k) {
      LOG(INFO) << "    [Forward] Layer " << layer << ", param blob " << k
                << " data: " << Mean(params[k]->asum_data(), *params[k]);
    }
  }
}

void LogBackwardValues(const Net& net) {
  const auto& calls = net.graph().calls;
  for (size_t i = calls.size(); i-- > 0;) {
    if (!calls[i].needs_backward) continue;
    const std::string& layer = net.layer_names()[i];
    for (size_t k = 0; k < calls[i].bottoms.size(); ++k) {
      if (!calls[i].bottom_needs_gradient[k]) continue;
      const Blob& blob = *net.blob_by_name(calls[i].bottoms[k]->name);
      LOG(INFO) << "    [Backward] Layer " << layer << ", bottom blob " << calls[i].bottoms[k]->name
                << " diff: " << Mean(blob.asum_diff(), blob);
    }
    const auto& params = net.layer_params(static_cast<int>(i));
    for (size_t k = 0; k < params.size(); ++k) {
      if (!calls[i].param_needs_gradient[k]) continue;
      LOG(INFO) << "    [Backward] Layer " << layer << ", param blob " << k
                << " diff: " << Mean(params[k]->asum_diff(), *params[k]);
    }
  }
  double l1_data = 0, l1_diff = 0, squares_data = 0, squares_diff = 0;
  for (const Net::LearnableParam& param : net.learnable_params()) {
    l1_data += param.blob->asum_data(), l1_diff += param.blob->asum_diff();
    squares_data += param.blob->sumsq_data(), squares_diff += param.blob->sumsq_diff();
  }
  LOG(ERROR) << "    [Backward] All net params (data, diff): L1 norm = (" << l1_data << ", "
             << l1_diff << "); L2 norm = (" << std::sqrt(squares_data) << ", "
             << std::sqrt(squares_diff) << ")";
}

void LogUpdateValues(const Net& net, const std::vector<std::shared_ptr<Blob>>& history) {
  for (size_t i = 0; i < net.learnable_params().size(); ++i) {
    const Net::LearnableParam& param = net.learnable_params()[i];
    const size_t dot = param.name.rfind('.');
    LOG(INFO) << "    [Update] Layer " << param.name.substr(0, dot) << ", param "
              << param.name.substr(dot + 1)
              << " data: " << Mean(param.blob->asum_data(), *param.blob)
              << "; diff: " << Mean(history[i]->asum_data(), *history[i]);
  }
}

}  // namespace caffe
