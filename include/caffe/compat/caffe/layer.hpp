// Layer<Dtype>: the base class of layers written for Caffe.
//
//     template <typename Dtype>
//     class DoubleLayer : public NeuronLayer<Dtype> {
//      public:
//       explicit DoubleLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
//       virtual inline const char* type() const { return "Double"; }
//
//      protected:
//       virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>&
//       top); virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>&
//       propagate_down,
//                                 const vector<Blob<Dtype>*>& bottom);
//     };
//     INSTANTIATE_CLASS(DoubleLayer);
//     REGISTER_LAYER_CLASS(Double);
//
// A registered layer is a layer type of Cortado like any other: `caffe train` knows it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "blob.hpp"
#include "caffe/proto/caffe.pb.h"
#include "common.hpp"
#include "layer_factory.hpp"
#include "util/math_functions.hpp"

CAFFE_BVLC_BEGIN
template <typename Dtype>
class Layer {
 public:
  // Takes over the parameters that `param` holds.
  explicit Layer(const LayerParameter& param);
  virtual ~Layer() {}

  // Checks the numbers of blobs, then calls LayerSetUp and Reshape and sets the loss weights of the
  // tops.
  void SetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  // Called once: reads the options and creates the parameters (blobs_).
  virtual void LayerSetUp(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>&) {}
  // Sets the shapes of the tops; called before every Forward.
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) = 0;
  // Returns the weighted sum of the tops that are losses.
  Dtype Forward(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  // Adds to the gradients that the parameters already hold.
  void Backward(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                const vector<Blob<Dtype>*>& bottom);

  vector<shared_ptr<Blob<Dtype>>>& blobs() { return blobs_; }
  const LayerParameter& layer_param() const { return layer_param_; }
  virtual void ToProto(LayerParameter* param, bool write_diff = false);

  Dtype loss(const int top_index) const {
    return loss_.size() > static_cast<size_t>(top_index) ? loss_[top_index] : Dtype(0);
  }
  void set_loss(const int top_index, const Dtype value) {
    if (loss_.size() <= static_cast<size_t>(top_index)) loss_.resize(top_index + 1, Dtype(0));
    loss_[top_index] = value;
  }

  virtual inline const char* type() const { return ""; }
  // -1: any number.
  virtual inline int ExactNumBottomBlobs() const { return -1; }
  virtual inline int MinBottomBlobs() const { return -1; }
  virtual inline int MaxBottomBlobs() const { return -1; }
  virtual inline int ExactNumTopBlobs() const { return -1; }
  virtual inline int MinTopBlobs() const { return -1; }
  virtual inline int MaxTopBlobs() const { return -1; }
  virtual inline bool EqualNumBottomTopBlobs() const { return false; }
  // True if the net creates tops that the prototxt does not name.
  virtual inline bool AutoTopBlobs() const { return false; }
  virtual inline bool AllowForceBackward(const int) const { return true; }

  // True if Backward has to compute the gradient of the parameter.
  inline bool param_propagate_down(const int param_id) {
    return param_propagate_down_.size() > static_cast<size_t>(param_id) &&
           param_propagate_down_[param_id];
  }
  inline void set_param_propagate_down(const int param_id, const bool value) {
    if (param_propagate_down_.size() <= static_cast<size_t>(param_id)) {
      param_propagate_down_.resize(param_id + 1, true);
    }
    param_propagate_down_[param_id] = value;
  }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) = 0;
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    Forward_cpu(bottom, top);
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) = 0;
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    Backward_cpu(top, propagate_down, bottom);
  }
  // Throws caffe::Error if the numbers of blobs break the rules above.
  virtual void CheckBlobCounts(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  // Writes loss_weight into the diffs of the tops.
  inline void SetLossWeights(const vector<Blob<Dtype>*>& top);

  LayerParameter layer_param_;
  Phase phase_;
  vector<shared_ptr<Blob<Dtype>>> blobs_;
  vector<bool> param_propagate_down_;
  vector<Dtype> loss_;

 private:
  template <typename T>
  friend class LayerBridge;

  DISABLE_COPY_AND_ASSIGN(Layer);
};

template <typename Dtype>
inline void Layer<Dtype>::SetLossWeights(const vector<Blob<Dtype>*>& top) {
  if (layer_param_.loss_weight_size() == 0) return;
  CHECK_EQ(static_cast<int>(top.size()), layer_param_.loss_weight_size())
      << "loss_weight must be given for no top or for each";
  for (size_t i = 0; i < top.size(); ++i) {
    const Dtype weight = static_cast<Dtype>(layer_param_.loss_weight(static_cast<int>(i)));
    if (weight == Dtype(0)) continue;
    set_loss(static_cast<int>(i), weight);
    caffe_set(top[i]->count(), weight, top[i]->mutable_cpu_diff());
  }
}

extern template class Layer<float>;
extern template class Layer<double>;

CAFFE_BVLC_END
