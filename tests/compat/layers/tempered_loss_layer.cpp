// A loss that contains another layer, as Caffe's SoftmaxWithLoss does: cross entropy of a softmax.
#include <algorithm>
#include <cfloat>
#include <vector>

#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/layers/softmax_layer.hpp"

namespace caffe {

template <typename Dtype>
class TemperedLossLayer : public LossLayer<Dtype> {
 public:
  explicit TemperedLossLayer(const LayerParameter& param) : LossLayer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    LossLayer<Dtype>::LayerSetUp(bottom, top);
    LayerParameter softmax_param(this->layer_param_);
    softmax_param.set_type("Softmax");
    softmax_param.clear_loss_weight();
    softmax_layer_ = LayerRegistry<Dtype>::CreateLayer(softmax_param);
    softmax_bottom_vec_.push_back(bottom[0]);
    softmax_top_vec_.push_back(&prob_);
    softmax_layer_->SetUp(softmax_bottom_vec_, softmax_top_vec_);
  }
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    LossLayer<Dtype>::Reshape(bottom, top);
    softmax_layer_->Reshape(softmax_bottom_vec_, softmax_top_vec_);
  }
  virtual inline const char* type() const { return "TemperedLoss"; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    softmax_layer_->Forward(softmax_bottom_vec_, softmax_top_vec_);
    Dtype loss = 0;
    for (int n = 0; n < prob_.num(); ++n) {
      const int label = static_cast<int>(bottom[1]->cpu_data()[n]);
      loss -= std::log(std::max(prob_.data_at(n, label, 0, 0), Dtype(FLT_MIN)));
    }
    top[0]->mutable_cpu_data()[0] = loss / prob_.num();
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    if (propagate_down[1]) {
      LOG(FATAL) << this->type() << " Layer cannot backpropagate to label inputs.";
    }
    if (!propagate_down[0]) return;
    Dtype* bottom_diff = bottom[0]->mutable_cpu_diff();
    caffe_copy(prob_.count(), prob_.cpu_data(), bottom_diff);
    for (int n = 0; n < prob_.num(); ++n) {
      bottom_diff[prob_.offset(n, static_cast<int>(bottom[1]->cpu_data()[n]))] -= 1;
    }
    caffe_scal(prob_.count(), top[0]->cpu_diff()[0] / prob_.num(), bottom_diff);
  }

  shared_ptr<Layer<Dtype> > softmax_layer_;
  Blob<Dtype> prob_;
  vector<Blob<Dtype>*> softmax_bottom_vec_, softmax_top_vec_;
};

INSTANTIATE_CLASS(TemperedLossLayer);
REGISTER_LAYER_CLASS(TemperedLoss);

}  // namespace caffe
