// LossLayer<Dtype>: has predictions and labels as bottoms, and a scalar top with loss weight 1
// unless the file says otherwise.
#pragma once

#include <vector>

#include "../layer.hpp"

CAFFE_BVLC_BEGIN
// Lower bound of the arguments of logarithms.
const float kLOG_THRESHOLD = 1e-20f;

template <typename Dtype>
class LossLayer : public Layer<Dtype> {
 public:
  explicit LossLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>&) {
    if (this->layer_param_.loss_weight_size() == 0) this->layer_param_.add_loss_weight(Dtype(1));
  }
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    CHECK_EQ(bottom[0]->shape(0), bottom[1]->shape(0))
        << "predictions and labels must have one number of items";
    top[0]->Reshape(vector<int>());
  }

  virtual inline int ExactNumBottomBlobs() const { return 2; }
  virtual inline int ExactNumTopBlobs() const { return 1; }
  virtual inline bool AutoTopBlobs() const { return true; }
  // Labels get no gradient.
  virtual inline bool AllowForceBackward(const int bottom_index) const { return bottom_index != 1; }
};

CAFFE_BVLC_END
