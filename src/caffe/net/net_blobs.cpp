#include "caffe/net/net_blobs.hpp"

#include <algorithm>
#include <set>

#include "caffe/error.hpp"

namespace caffe {

void NetBlobs::Create(const Graph& graph, const std::shared_ptr<Device>& device,
                      const std::shared_ptr<ThreadClaim>& claim) {
  for (const LayerCall& call : graph.calls) {
    for (const Value* top : call.tops) {
      if (!index_.emplace(top->name, static_cast<int>(blobs_.size())).second) continue;
      names_.push_back(top->name);
      blobs_.push_back(std::make_shared<Blob>(device, Shape{0}, DType::kFloat, claim));
    }
  }
  const auto ids = [&](const std::vector<Value*>& values) {
    std::vector<int> indices;
    for (const Value* value : values) indices.push_back(index(value->name));
    return indices;
  };
  for (const LayerCall& call : graph.calls) {
    bottom_ids_.push_back(ids(call.bottoms));
    top_ids_.push_back(ids(call.tops));
  }
  for (const auto& [name, value] : graph.external_data)
    defined_input_shapes_[name] = value->desc.shape;
  FindInputsAndOutputs(graph);
}

void NetBlobs::FindInputsAndOutputs(const Graph& graph) {
  std::set<std::string> read;
  for (const LayerCall& call : graph.calls) {
    for (const Value* bottom : call.bottoms) {
      if (graph.blobs.at(bottom->name) == bottom) read.insert(bottom->name);
    }
    for (size_t i = 0; i < call.tops.size(); ++i) {
      const std::string& name = call.tops[i]->name;
      if (call.loss_weights[i] != 0) loss_weights_[name] = call.loss_weights[i];
      if (call.layer->traits().is_input) {
        input_names_.push_back(name);
        inputs_.push_back(&at(name));
      }
    }
  }
  for (const auto& [name, value] : graph.blobs) {  // a map: alphabetical
    if (read.count(name) > 0) continue;
    output_names_.push_back(name);
    outputs_.push_back(&at(name));
  }
}

namespace {

void BindData(const Value& value, SyncedTensor& tensor, Bindings* bindings) {
  tensor.ResetForOverwriting(value.desc);
  (*bindings)[value.id] = &tensor;
}

// Zeroed, because some diffs are never written.
void BindDiff(const Value& value, SyncedTensor& tensor, Bindings* bindings) {
  tensor.Reset(value.desc);
  (*bindings)[value.id] = &tensor;
}

// True if the memory belongs to a blob, where users can reach it.
bool HasOwnMemory(const Value& value) {
  return value.is_kept || value.kind == ValueKind::kExternal;
}

void BindExternal(const std::map<std::string, Value*>& values,
                  const std::function<SyncedTensor&(const std::string&)>& tensor_of,
                  Bindings* bindings) {
  for (const auto& [name, value] : values) {
    SyncedTensor& tensor = tensor_of(name);
    CAFFE_ASSERT(
        value->desc.bytes() == tensor.desc().bytes() && value->desc.layout == tensor.desc().layout,
        "'", value->name, "' does not fit its blob");
    (*bindings)[value->id] = &tensor;
  }
}

}  // namespace

void NetBlobs::Bind(const Graph& graph, bool keep_all, Bindings* bindings) {
  others_.clear();
  for (const auto& [name, value] : graph.blobs) {
    Blob& blob = at(name);
    if (graph.external_data.count(name) == 0) others_.emplace_back(&blob, value->desc.shape);
    const TensorDesc shown{value->desc.shape, value->desc.dtype, Layout::kPlain};
    if (HasOwnMemory(*value)) {
      BindData(*value, blob.data_tensor(), bindings);
    } else {
      blob.data_tensor().Reset(shown);
    }
    const auto grad = graph.blob_grads.find(name);
    const auto external = graph.external_diffs.find(name);
    if (grad != graph.blob_grads.end() && HasOwnMemory(*grad->second)) {
      BindDiff(*grad->second, blob.diff_tensor(), bindings);
    } else if (external != graph.external_diffs.end()) {
      blob.diff_tensor().Reset(external->second->desc);  // the first version has no gradient
    } else {
      blob.diff_tensor().Reset(shown);
    }
  }
  BindExternal(
      graph.external_data,
      [&](const std::string& name) -> SyncedTensor& { return at(name).data_tensor(); }, bindings);
  BindExternal(
      graph.external_diffs,
      [&](const std::string& name) -> SyncedTensor& { return at(name).diff_tensor(); }, bindings);
  for (const auto& [name, value] : graph.blobs) {
    const auto grad = graph.blob_grads.find(name);
    const bool has_diff = graph.external_diffs.count(name) > 0 ||
                          (grad != graph.blob_grads.end() && HasOwnMemory(*grad->second));
    at(name).data_tensor().set_is_kept(keep_all || HasOwnMemory(*value) ||
                                       graph.external_data.count(name) > 0);
    at(name).diff_tensor().set_is_kept(keep_all || has_diff);
  }
}

bool NetBlobs::InputsWereReshaped(const Graph& graph) const {
  return std::any_of(
      graph.external_data.begin(), graph.external_data.end(),
      [&](const auto& input) { return at(input.first).shape() != input.second->desc.shape; });
}

bool NetBlobs::OthersWereReshaped() const {
  return std::any_of(others_.begin(), others_.end(),
                     [](const auto& bound) { return bound.first->shape() != bound.second; });
}

std::map<std::string, Shape> NetBlobs::ReshapedInputs(const Graph& graph) const {
  std::map<std::string, Shape> reshaped;
  for (const auto& [name, value] : graph.external_data) {
    const Shape& shape = at(name).shape();
    if (shape != defined_input_shapes_.at(name)) reshaped[name] = shape;
  }
  return reshaped;
}

void NetBlobs::FillLossDiffs(const Graph& graph, double loss_scale) {
  for (const auto& [name, weight] : loss_weights_) {
    if (graph.external_diffs.count(name) == 0) continue;
    Blob& blob = at(name);
    std::fill_n(blob.mutable_cpu_diff<float>(), blob.count(),
                static_cast<float>(weight * loss_scale));
  }
}

}  // namespace caffe
