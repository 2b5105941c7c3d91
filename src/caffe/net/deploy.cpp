#include "caffe/deploy.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/model_info.hpp"

namespace caffe {
namespace {

// The activation that a loss applies to scores before it compares them with labels; empty if none.
std::string ActivationOf(const std::string& loss) {
  static const std::map<std::string, std::string> kActivations = {
      {"SoftmaxWithLoss", "Softmax"},
      {"InfogainLoss", "Softmax"},
      {"FocalLoss", "Softmax"},
      {"SigmoidCrossEntropyLoss", "Sigmoid"}};
  const auto found = kActivations.find(loss);
  return found == kActivations.end() ? "" : found->second;
}

class DeployMaker {
 public:
  DeployMaker(const Net& net, std::vector<std::string> inputs)
      : net_(net), layers_(net.definition().layer()), inputs_(std::move(inputs)) {
    CAFFE_ASSERT(static_cast<size_t>(layers_.size()) == net.layers().size(), net.name());
  }

  NetParameter Make() {
    FindData();
    FindInputs();
    FindLabels();
    FindAnswers();
    NetParameter deploy = net_.definition();
    deploy.clear_layer();
    deploy.clear_state();
    deploy.clear_force_backward();
    for (int i = 0; i < layers_.size(); ++i) {
      if (IsData(i)) {
        AddInput(i, &deploy);
      } else if (keeps_[i] && PassesData(i)) {
        AddIdentity(layers_[i], &deploy);
      } else if (keeps_[i]) {
        Tidy(layers_[i], deploy.add_layer());
      }
    }
    for (const auto& [scores, loss] : losses_) {
      if (!HasActivation(deploy, scores)) AddActivation(scores, loss, &deploy);
    }
    return deploy;
  }

 private:
  // Layers that read data. If there are none and the net has a loss, inputs and DummyData layers
  // stand for them.
  void FindData() {
    is_data_.assign(layers_.size(), false);
    const bool has_loss = Mark(&LayerTraits::is_loss, "", nullptr);
    const bool is_found = Mark(&LayerTraits::is_data, "DummyData", &is_data_) ||
                          (has_loss && (Mark(&LayerTraits::is_input, "DummyData", &is_data_) ||
                                        Mark(&LayerTraits::is_data, "", &is_data_)));
    Require(is_found, "net '", net_.name(),
            "' has no data layer in phase TEST: it is for inference already");
  }
  // True if there are layers with the trait that are not of type `except`; marks them.
  bool Mark(bool LayerTraits::*trait, const std::string& except, std::vector<bool>* marks) const {
    bool is_found = false;
    for (int i = 0; i < layers_.size(); ++i) {
      if (!(net_.layers()[i]->traits().*trait) || layers_[i].type() == except) continue;
      is_found = true;
      if (marks != nullptr) (*marks)[i] = true;
    }
    return is_found;
  }

  bool IsData(int i) const { return is_data_[i]; }
  // In phase TEST, its first top is its first bottom, whatever the labels; it passes them on.
  bool PassesData(int i) const { return layers_[i].type() == "Mixup"; }
  bool NeedsLabels(int i) const {
    if (PassesData(i)) return false;
    const auto& bottoms = layers_[i].bottom();
    return std::any_of(bottoms.begin(), bottoms.end(),
                       [&](const std::string& bottom) { return labels_.contains(bottom); });
  }
  bool IsInput(const std::string& top) const {
    return std::find(inputs_.begin(), inputs_.end(), top) != inputs_.end();
  }

  void FindInputs() {
    std::vector<std::string> tops;
    for (int i = 0; i < layers_.size(); ++i) {
      if (IsData(i)) tops.insert(tops.end(), layers_[i].top().begin(), layers_[i].top().end());
    }
    if (inputs_.empty()) inputs_ = {tops.front()};
    for (const std::string& input : inputs_) {
      Require(std::find(tops.begin(), tops.end(), input) != tops.end(), "input '", input,
              "' is made by no data layer of net '", net_.name(), "'; they make ",
              JoinByComma(tops));
    }
  }

  // Finds labels and everything computed from them.
  void FindLabels() {
    for (int i = 0; i < layers_.size(); ++i) {
      if (PassesData(i)) labels_.insert(layers_[i].top(1));
      if (!IsData(i) && !NeedsLabels(i)) continue;
      for (const std::string& top : layers_[i].top()) {
        if (!IsData(i) || !IsInput(top)) labels_.insert(top);
      }
    }
  }

  // If several layers compare with the same label, only the last one's scores are an answer: the
  // earlier ones are auxiliary losses for training.
  void FindAnswers() {
    std::map<std::string, int> last;  // by label
    std::set<std::string> read;
    for (int i = 0; i < layers_.size(); ++i) {
      read.insert(layers_[i].bottom().begin(), layers_[i].bottom().end());
      for (const std::string& bottom : layers_[i].bottom()) {
        if (labels_.contains(bottom) && !PassesData(i)) last[bottom] = i;
      }
    }
    std::set<std::string> wanted;
    for (const auto& [label, i] : last) {
      for (const std::string& bottom : layers_[i].bottom()) {
        if (!labels_.contains(bottom)) wanted.insert(bottom);
      }
    }
    for (const LayerParameter& layer : layers_) {
      for (const std::string& top : layer.top()) {
        if (!read.contains(top) && !labels_.contains(top)) wanted.insert(top);
      }
    }
    FindLosses(wanted);
    KeepMakers(wanted);
    Require(std::count(keeps_.begin(), keeps_.end(), true) > 0, "net '", net_.name(),
            "': nothing is left without what depends on its labels; name the inputs that it is "
            "asked about");
  }

  void FindLosses(const std::set<std::string>& wanted) {
    for (const LayerParameter& layer : layers_) {
      const bool is_answer = layer.bottom_size() > 0 && wanted.contains(layer.bottom(0));
      if (is_answer && !ActivationOf(layer.type()).empty()) losses_[layer.bottom(0)] = &layer;
    }
  }

  // From the answers back to the inputs. Of layers that write in place, the last one comes first.
  void KeepMakers(std::set<std::string> wanted) {
    keeps_.assign(layers_.size(), false);
    for (int i = layers_.size() - 1; i >= 0; --i) {
      const auto& tops = layers_[i].top();
      keeps_[i] = !IsData(i) && !NeedsLabels(i) &&
                  std::any_of(tops.begin(), tops.end(),
                              [&](const std::string& top) { return wanted.contains(top); });
      if (keeps_[i]) wanted.insert(layers_[i].bottom().begin(), layers_[i].bottom().end());
    }
  }

  void AddInput(int i, NetParameter* deploy) const {
    LayerParameter input;
    input.set_name(layers_[i].name());
    input.set_type("Input");
    for (int k = 0; k < layers_[i].top_size(); ++k) {
      if (!IsInput(layers_[i].top(k))) continue;
      input.add_top(layers_[i].top(k));
      // Uses the graph's shape, because blobs of an unallocated net have no shapes.
      const Shape& shape = net_.graph().calls[i].tops[k]->desc.shape;
      BlobShape* const dims = input.mutable_input_param()->add_shape();
      for (int axis = 0; axis < shape.num_axes(); ++axis)
        dims->add_dim(axis == 0 ? 1 : shape[axis]);
    }
    if (input.top_size() > 0) *deploy->add_layer() = input;
  }

  static void AddIdentity(const LayerParameter& layer, NetParameter* deploy) {
    if (layer.top(0) == layer.bottom(0)) return;
    LayerParameter* const split = deploy->add_layer();
    split->set_name(layer.name());
    split->set_type("Split");
    split->add_bottom(layer.bottom(0));
    split->add_top(layer.top(0));
  }

  static void Tidy(const LayerParameter& layer, LayerParameter* tidied) {
    *tidied = layer;
    tidied->clear_phase();
    tidied->clear_include();
    tidied->clear_exclude();
    tidied->clear_loss_weight();
    tidied->clear_propagate_down();
    tidied->clear_blobs();
  }

  static bool HasActivation(const NetParameter& deploy, const std::string& scores) {
    return std::any_of(deploy.layer().begin(), deploy.layer().end(), [&](const auto& layer) {
      return (layer.type() == "Softmax" || layer.type() == "Sigmoid") && layer.bottom(0) == scores;
    });
  }

  void AddActivation(const std::string& scores, const LayerParameter* loss,
                     NetParameter* deploy) const {
    LayerParameter* const layer = deploy->add_layer();
    layer->set_type(ActivationOf(loss->type()));
    layer->set_name(losses_.size() == 1 ? "prob" : scores + "_prob");
    layer->add_bottom(scores);
    layer->add_top(layer->name());
    if (layer->type() == "Softmax" && loss->has_softmax_param())
      *layer->mutable_softmax_param() = loss->softmax_param();
  }

  const Net& net_;
  const google::protobuf::RepeatedPtrField<LayerParameter>& layers_;
  std::vector<std::string> inputs_;
  std::set<std::string> labels_;                         // blobs
  std::vector<bool> is_data_, keeps_;                    // by layer
  std::map<std::string, const LayerParameter*> losses_;  // by the scores that they read
};

}  // namespace

NetParameter DeployNet(const Net& net, const std::vector<std::string>& inputs) {
  Require(net.phase() == TEST, "net '", net.name(),
          "' is of phase TRAIN; a net for inference is made of the one of phase TEST");
  ModelInfo info = DescribeModel(net.definition());
  info.clear_mean();
  NetParameter deploy = DeployMaker(net, inputs).Make();
  if (info.ByteSizeLong() > 0) *deploy.mutable_model_info() = info;
  return deploy;
}

}  // namespace caffe
