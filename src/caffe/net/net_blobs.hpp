// NetBlobs: a net's blobs by name, and their memory.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/core/thread_claim.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/plan/program.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// The set of blobs is fixed; their shapes and layouts depend on the plan.
class NetBlobs {
 public:
  // Must be called first.
  void Create(const Graph& graph, const std::shared_ptr<Device>& device,
              const std::shared_ptr<ThreadClaim>& claim);
  bool are_created() const { return !blobs_.empty(); }

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::shared_ptr<Blob>>& all() const { return blobs_; }
  bool has(const std::string& name) const { return index_.count(name) > 0; }
  Blob& at(const std::string& name) const { return *blobs_[index_.at(name)]; }
  int index(const std::string& name) const { return index_.at(name); }
  // Per layer, as indices into all().
  const std::vector<std::vector<int>>& bottom_ids() const { return bottom_ids_; }
  const std::vector<std::vector<int>>& top_ids() const { return top_ids_; }
  const std::vector<std::string>& input_names() const { return input_names_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  const std::vector<Blob*>& inputs() const { return inputs_; }
  const std::vector<Blob*>& outputs() const { return outputs_; }
  // Nonzero loss weights, by blob name.
  const std::map<std::string, float>& loss_weights() const { return loss_weights_; }

  // Gives each blob its shape in the plan, and memory to blobs that outlive a run. In a plan that
  // is not keep-all, the other blobs cannot be read.
  void Bind(const Graph& graph, bool keep_all, Bindings* bindings);
  // True if an input has another shape than in the plan.
  bool InputsWereReshaped(const Graph& graph) const;
  // True if a blob that is not an input has another shape than when it was bound.
  bool OthersWereReshaped() const;
  // Shapes of inputs that differ from the prototxt's.
  std::map<std::string, Shape> ReshapedInputs(const Graph& graph) const;
  // Sets the diffs of a keep-all net's losses, where backward begins, to the scaled loss weights.
  void FillLossDiffs(const Graph& graph, double loss_scale);

 private:
  void FindInputsAndOutputs(const Graph& graph);

  std::vector<std::string> names_;
  std::vector<std::shared_ptr<Blob>> blobs_;
  std::map<std::string, int> index_;
  std::vector<std::vector<int>> bottom_ids_, top_ids_;
  std::vector<std::string> input_names_, output_names_;
  std::vector<Blob*> inputs_, outputs_;
  std::map<std::string, float> loss_weights_;
  std::map<std::string, Shape> defined_input_shapes_;  // in the prototxt
  std::vector<std::pair<const Blob*, Shape>> others_;  // not inputs, as they were bound
};

}  // namespace caffe
