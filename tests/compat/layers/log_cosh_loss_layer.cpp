// A loss layer with its own blob: the mean of log cosh(prediction - target).
#include <cmath>
#include <vector>

#include "caffe/layers/loss_layer.hpp"
#include "caffe/util/math_functions.hpp"

namespace caffe {

template <typename Dtype>
class LogCoshLossLayer : public LossLayer<Dtype> {
 public:
  explicit LogCoshLossLayer(const LayerParameter& param) : LossLayer<Dtype>(param), diff_() {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    LossLayer<Dtype>::Reshape(bottom, top);
    CHECK_EQ(bottom[0]->count(1), bottom[1]->count(1)) << "Inputs must have the same dimension.";
    diff_.ReshapeLike(*bottom[0]);
  }
  virtual inline const char* type() const { return "LogCoshLoss"; }
  virtual inline bool AllowForceBackward(const int) const { return true; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    const int count = bottom[0]->count();
    caffe_sub(count, bottom[0]->cpu_data(), bottom[1]->cpu_data(), diff_.mutable_cpu_data());
    Dtype loss = 0;
    for (int i = 0; i < count; ++i) loss += std::log(std::cosh(diff_.cpu_data()[i]));
    top[0]->mutable_cpu_data()[0] = loss / bottom[0]->num();
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    for (int i = 0; i < 2; ++i) {
      if (!propagate_down[i]) continue;
      const Dtype sign = i == 0 ? 1 : -1;
      const Dtype alpha = sign * top[0]->cpu_diff()[0] / bottom[i]->num();
      Dtype* bottom_diff = bottom[i]->mutable_cpu_diff();
      for (int j = 0; j < bottom[i]->count(); ++j) {
        bottom_diff[j] = alpha * std::tanh(diff_.cpu_data()[j]);
      }
    }
  }

  Blob<Dtype> diff_;
};

INSTANTIATE_CLASS(LogCoshLossLayer);
REGISTER_LAYER_CLASS(LogCoshLoss);

}  // namespace caffe
