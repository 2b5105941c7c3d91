#include "caffe/net/net_params.hpp"

#include <map>

namespace caffe {

void NetParams::Create(const NetParameter& definition, const Graph& graph,
                       const std::shared_ptr<Device>& device, uint64_t seed, Loading loading,
                       const std::shared_ptr<ThreadClaim>& claim) {
  const SharedSpecs shared = MergeSharedSpecs(definition);
  std::map<const Value*, std::shared_ptr<Blob>> owners;
  by_layer_.resize(graph.calls.size());
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const LayerCall& call = graph.calls[i];
    for (size_t k = 0; k < call.params.size(); ++k) {
      const auto index = static_cast<int>(k);
      Value* const value = call.param_values[k];
      auto blob =
          std::make_shared<Blob>(device, call.params[k].shape, value->root()->desc.dtype, claim);
      by_layer_[i].push_back(blob);
      if (value->owner != nullptr) {
        blob->ShareData(*owners.at(value->owner));
        blob->ShareDiff(*owners.at(value->owner));
        continue;
      }
      owners[value] = blob;
      InitializeParam(*call.layer, index, call.params[k], seed, loading, blob.get());
      learnable_.push_back(DescribeParam(call.layer->param(), index, call.params[k], shared, blob));
      learnable_.back().has_gradient = call.param_needs_gradient[k];
      learnable_.back().backward_type = call.types.backward;
    }
  }
}

void NetParams::CheckFillers(const Graph& graph) {
  for (const LayerCall& call : graph.calls) {
    for (size_t k = 0; k < call.params.size(); ++k) {
      if (call.param_values[k]->owner != nullptr) continue;
      CheckParamFiller(*call.layer, static_cast<int>(k), call.params[k]);
    }
  }
}

std::set<const Blob*> NetParams::Owned() const {
  std::set<const Blob*> owned;
  for (const Net::LearnableParam& learnable : learnable_) owned.insert(learnable.blob.get());
  return owned;
}

void NetParams::Bind(const Graph& graph, Bindings* bindings) const {
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const LayerCall& call = graph.calls[i];
    for (size_t k = 0; k < call.params.size(); ++k) {
      const Blob& blob = *by_layer_[i][k];
      (*bindings)[call.param_values[k]->id] = &blob.data_tensor();
      (*bindings)[call.param_grads[k]->id] = &blob.diff_tensor();
    }
  }
}

}  // namespace caffe
