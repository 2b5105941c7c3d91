// NetParams: a net's parameters and their memory.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/core/thread_claim.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/net/weights.hpp"
#include "caffe/plan/program.hpp"

namespace caffe {

class NetParams {
 public:
  // For a net without memory: throws the errors that Create() would throw for fillers.
  static void CheckFillers(const Graph& graph);
  // Creates parameters with initial values from the definition or the fillers.
  void Create(const NetParameter& definition, const Graph& graph,
              const std::shared_ptr<Device>& device, uint64_t seed, Loading loading,
              const std::shared_ptr<ThreadClaim>& claim);
  bool are_created() const { return !by_layer_.empty(); }

  const LayerBlobs& by_layer() const { return by_layer_; }
  const std::vector<Net::LearnableParam>& learnable() const { return learnable_; }
  std::set<const Blob*> Owned() const;

  void Bind(const Graph& graph, Bindings* bindings) const;
  // Throws InvalidArgument if the plan needs another shape than a parameter has; explain(has,
  // needs) makes that part of the message.
  template <typename Explain>
  void CheckShapes(const Graph& plan, const Explain& explain) const {
    for (size_t i = 0; i < std::min(by_layer_.size(), plan.calls.size()); ++i) {
      for (size_t k = 0; k < by_layer_[i].size(); ++k) {
        const Shape &has = by_layer_[i][k]->shape(), &needs = plan.calls[i].params[k].shape;
        if (has == needs) continue;
        throw InvalidArgument(StrCat("layer '", plan.LayerName(static_cast<int>(i)),
                                     "': parameter ", k, " ", explain(has, needs)));
      }
    }
  }

 private:
  LayerBlobs by_layer_;
  std::vector<Net::LearnableParam> learnable_;
};

}  // namespace caffe
