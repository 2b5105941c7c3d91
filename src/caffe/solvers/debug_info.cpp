#include "caffe/solvers/debug_info.hpp"

#include <glog/logging.h>

#include <cmath>

#include "caffe/graph/graph.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

double Mean(double sum, const Blob& blob) {
  return blob.count() == 0 ? 0 : sum / static_cast<double>(blob.count());
}

// A parameter's own name, or its index in the layer.
std::string DisplayName(const LayerCall& call, size_t param) {
  const LayerParameter& layer = call.layer->param();
  const int i = static_cast<int>(param);
  const bool is_named = i < layer.param_size() && !layer.param(i).name().empty();
  return is_named ? layer.param(i).name() : std::to_string(i);
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
      LOG(INFO) << "    [Forward] Layer " << layer << ", param blob " << DisplayName(calls[i], k)
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

std::map<const Blob*, std::vector<double>> ParamValues(const Net& net) {
  std::map<const Blob*, std::vector<double>> values;
  for (const Net::LearnableParam& param : net.learnable_params()) {
    const Blob* blob = param.blob.get();
    VisitFloat(blob->data_tensor().desc().dtype, [&]<typename T>(TypeTag<T>) {
      const T* elements = blob->cpu_data<T>();
      values[blob] = std::vector<double>(elements, elements + blob->count());
    });
  }
  return values;
}

void LogUpdateValues(const Net& net, const std::map<const Blob*, std::vector<double>>& before) {
  std::map<const Blob*, std::vector<double>> after = ParamValues(net);
  const auto& calls = net.graph().calls;
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto& params = net.layer_params(static_cast<int>(i));
    for (size_t k = 0; k < params.size(); ++k) {
      const Blob& blob = *params[k];
      const auto found = after.find(&blob);
      if (found == after.end()) continue;
      const std::vector<double>&old = before.at(&blob), &updated = found->second;
      double data = 0, update = 0;
      for (size_t j = 0; j < old.size(); ++j) {
        data += std::abs(old[j]);
        update += std::abs(old[j] - updated[j]);
      }
      LOG(INFO) << "    [Update] Layer " << net.layer_names()[i] << ", param "
                << DisplayName(calls[i], k) << " data: " << Mean(data, blob)
                << "; diff: " << Mean(update, blob);
      after.erase(found);  // shared parameters are listed with their first layer
    }
  }
}

}  // namespace caffe
