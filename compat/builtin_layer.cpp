#include "caffe/compat/caffe/layers/builtin_layer.hpp"

#include <algorithm>
#include <utility>

#include "caffe/compat/caffe/util/rng.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/net/training_net.hpp"
#include "compat/extents.hpp"
#include "compat/net_access.hpp"
#include "compat/net_blob.hpp"

namespace caffe::bvlc {
namespace {

LayerParameter WithType(LayerParameter param, const char* type) {
  param.set_type(type);
  return param;
}

// A net with only this layer, whose inputs are its bottoms. The caller provides the gradients of
// all tops, so none has a loss weight of its own.
template <typename Dtype>
NetParameter NetOf(const LayerParameter& param, const vector<Blob<Dtype>*>& bottoms,
                   size_t num_tops) {
  NetParameter net;
  net.mutable_state()->set_phase(param.phase());
  net.set_force_backward(true);
  LayerParameter layer = param;
  layer.clear_bottom(), layer.clear_top(), layer.clear_loss_weight();
  layer.clear_include(), layer.clear_exclude(), layer.clear_propagate_down();
  if (layer.name().empty()) layer.set_name(param.type());
  for (size_t i = 0; i < bottoms.size(); ++i) {
    LayerParameter& input = *net.add_layer();
    input.set_type("Input");
    input.set_name(StrCat("bottom ", i));
    input.add_top(input.name());
    BlobShape& shape = *input.mutable_input_param()->add_shape();
    for (const int extent : bottoms[i]->shape()) shape.add_dim(extent);
    layer.add_bottom(input.name());
  }
  for (size_t i = 0; i < num_tops; ++i) {
    layer.add_top(StrCat("top ", i));
    layer.add_loss_weight(0);
  }
  *net.add_layer() = layer;
  return net;
}

}  // namespace

template <typename Dtype>
struct BuiltinLayer<Dtype>::Work {
  LayerTraits traits;
  std::shared_ptr<::caffe::Layer> layer;  // for its traits
  // If used alone.
  std::unique_ptr<::caffe::Net> own;
  // If it is a layer of a net.
  NetAccess* net = nullptr;
  int index = 0;

  ::caffe::Net& set_up() const {
    Require(own != nullptr, "Reshape, Forward and Backward come after SetUp");
    return *own;
  }
  int last() const { return static_cast<int>(own->layers().size()) - 1; }
  ::caffe::Blob& top(size_t i) const { return *own->blobs()[own->top_ids(last()).at(i)]; }
};

template <typename Dtype>
BuiltinLayer<Dtype>::BuiltinLayer(const LayerParameter& param)
    : Layer<Dtype>(param), work_(new Work) {
  work_->layer = ::caffe::LayerRegistry::CreateLayer(param);
  work_->traits = work_->layer->traits();
}

template <typename Dtype>
BuiltinLayer<Dtype>::BuiltinLayer(const LayerParameter& param, const char* type)
    : BuiltinLayer(WithType(param, type)) {}

template <typename Dtype>
BuiltinLayer<Dtype>::BuiltinLayer(const LayerParameter& param, NetAccess* net, int index)
    : Layer<Dtype>(param), work_(new Work) {
  work_->layer = net->net->layers().at(index);
  work_->traits = work_->layer->traits();
  work_->net = net;
  work_->index = index;
  this->blobs_.clear();
  for (const auto& blob : net->net->layer_params(index))
    this->blobs_.push_back(std::make_shared<Blob<Dtype>>(std::make_shared<NetBlob>(blob)));
}

template <typename Dtype>
BuiltinLayer<Dtype>::~BuiltinLayer() = default;

template <typename Dtype>
int BuiltinLayer<Dtype>::ExactNumBottomBlobs() const {
  return work_->traits.num_bottoms;
}
template <typename Dtype>
int BuiltinLayer<Dtype>::MinBottomBlobs() const {
  return work_->traits.min_bottoms;
}
template <typename Dtype>
int BuiltinLayer<Dtype>::MaxBottomBlobs() const {
  return work_->traits.max_bottoms;
}
template <typename Dtype>
int BuiltinLayer<Dtype>::ExactNumTopBlobs() const {
  return work_->traits.num_tops;
}
template <typename Dtype>
int BuiltinLayer<Dtype>::MinTopBlobs() const {
  return work_->traits.min_tops;
}
template <typename Dtype>
int BuiltinLayer<Dtype>::MaxTopBlobs() const {
  return work_->traits.max_tops;
}
template <typename Dtype>
bool BuiltinLayer<Dtype>::EqualNumBottomTopBlobs() const {
  return work_->traits.equal_bottoms_and_tops;
}
template <typename Dtype>
bool BuiltinLayer<Dtype>::AutoTopBlobs() const {
  return work_->traits.is_loss;
}
template <typename Dtype>
bool BuiltinLayer<Dtype>::AllowForceBackward(const int bottom_index) const {
  return work_->layer->AllowForceBackward(bottom_index);
}

template <typename Dtype>
void BuiltinLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom,
                                     const vector<Blob<Dtype>*>& top) {
  Require(work_->net == nullptr, "SetUp: layer '", this->layer_param_.name(),
          "' is a net's, which has set it up");
  if (work_->traits.is_loss && this->layer_param_.loss_weight_size() == 0)
    this->layer_param_.add_loss_weight(1);
  NetOptions options = OptionsOf<Dtype>();
  options.seed = (*caffe_rng())();
  work_->own =
      std::make_unique<::caffe::Net>(NetOf(this->layer_param_, bottom, top.size()), options);
  this->blobs_.clear();
  for (const auto& blob : work_->own->layer_params(work_->last()))
    this->blobs_.push_back(std::make_shared<Blob<Dtype>>(std::make_shared<NetBlob>(blob)));
  this->param_propagate_down_.assign(this->blobs_.size(), true);
}

template <typename Dtype>
void BuiltinLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom,
                                  const vector<Blob<Dtype>*>& top) {
  if (work_->net != nullptr) return;
  ::caffe::Net& own = work_->set_up();
  bool is_new = false;
  for (size_t i = 0; i < bottom.size(); ++i) {
    const Shape shape = ToShape(bottom[i]->shape());
    if (own.blobs()[i]->shape() == shape) continue;
    own.blobs()[i]->Reshape(shape);
    is_new = true;
  }
  if (is_new) own.Reshape();
  for (size_t i = 0; i < top.size(); ++i) top[i]->Reshape(ToExtents(work_->top(i).shape()));
}

template <typename Dtype>
void BuiltinLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom,
                                      const vector<Blob<Dtype>*>& top) {
  if (work_->net != nullptr) {
    const ::caffe::Net& net = *work_->net->net;
    for (size_t i = 0; i < top.size(); ++i) {
      Require(top[i]->net_blob_ != nullptr &&
                  top[i]->net_blob_->blob == net.blobs()[net.top_ids(work_->index).at(i)],
              "Forward: layer '", this->layer_param_.name(),
              "' is a net's and runs on the net's blobs; make one of its own by LayerRegistry");
    }
    work_->net->net->ForwardFromTo(work_->index, work_->index);
    return;
  }
  ::caffe::Net& own = work_->set_up();
  for (size_t i = 0; i < bottom.size(); ++i) {
    std::copy_n(bottom[i]->cpu_data(), bottom[i]->count(),
                own.blobs()[i]->mutable_cpu_data<Dtype>());
  }
  // The pass number determines the layer's random numbers: the same set_random_seed() repeats them.
  TrainingNet(own).set_next_pass((*caffe_rng())());
  own.Forward();
  for (size_t i = 0; i < top.size(); ++i) {
    const ::caffe::Blob& result = work_->top(i);
    top[i]->Reshape(ToExtents(result.shape()));
    std::copy_n(result.template cpu_data<Dtype>(), top[i]->count(), top[i]->mutable_cpu_data());
  }
}

template <typename Dtype>
void BuiltinLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top,
                                       const vector<bool>& propagate_down,
                                       const vector<Blob<Dtype>*>& bottom) {
  if (work_->net != nullptr) {
    work_->net->net->BackwardFromTo(work_->index, work_->index);
    return;
  }
  ::caffe::Net& own = work_->set_up();
  for (size_t i = 0; i < top.size(); ++i)
    std::copy_n(top[i]->cpu_diff(), top[i]->count(),
                work_->top(i).template mutable_cpu_diff<Dtype>());
  own.BackwardFromTo(work_->last(), work_->last());
  const LayerCall& call = own.graph().calls.back();
  for (size_t i = 0; i < bottom.size(); ++i) {
    if (!propagate_down[i]) continue;
    Require(call.bottom_needs_gradient[i], "Backward: layer type ", this->layer_param_.type(),
            " has no gradient for bottom ", i, "; propagate_down must be false there");
    std::copy_n(own.blobs()[i]->cpu_diff<Dtype>(), bottom[i]->count(),
                bottom[i]->mutable_cpu_diff());
  }
}

template class BuiltinLayer<float>;
template class BuiltinLayer<double>;

}  // namespace caffe::bvlc
