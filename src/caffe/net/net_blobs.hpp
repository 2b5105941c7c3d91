// NetBlobs: a net's blobs by name, and their memory.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/core/thread_claim.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/plan/program.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// Which blobs there are does not change from plan to plan; their shapes and layouts do.
class NetBlobs {
 public:
  // Before anything else is called.
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
  // By name, where it is not 0.
  const std::map<std::string, float>& loss_weights() const { return loss_weights_; }

  // Gives each blob the shape that it has in the plan, and memory to those that outlive a run. In a
  // plan that does not keep all, the numbers of the others cannot be reached.
  void Bind(const Graph& graph, bool keep_all, Bindings* bindings);
  // Whether an input has another shape than in the plan.
  bool InputsWereReshaped(const Graph& graph) const;
  // Whether another blob has.
  bool OthersWereReshaped(const Graph& graph) const;
  // Those of inputs that are not the prototxt's.
  std::map<std::string, Shape> ReshapedInputs(const Graph& graph) const;
  // Writes a keep-all net's diffs of losses, which backward begins with: their weights, scaled.
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
  std::map<std::string, Shape> defined_input_shapes_;  // the prototxt's
};

}  // namespace caffe
