// A layer with weights: a gain and an offset for each channel.
#include <vector>

#include "caffe/filler.hpp"
#include "caffe/layer.hpp"

namespace caffe {

template <typename Dtype>
class ChannelGainLayer : public Layer<Dtype> {
 public:
  explicit ChannelGainLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>&) {
    channels_ = bottom[0]->shape(1);
    if (this->blobs_.size() > 0) {
      LOG(INFO) << "Skipping parameter initialization";
    } else {
      this->blobs_.resize(2);
      this->blobs_[0].reset(new Blob<Dtype>(vector<int>(1, channels_)));
      this->blobs_[1].reset(new Blob<Dtype>(vector<int>(1, channels_)));
      FillerParameter filler_param;
      filler_param.set_type("constant");
      filler_param.set_value(1);
      shared_ptr<Filler<Dtype> > filler(GetFiller<Dtype>(filler_param));
      filler->Fill(this->blobs_[0].get());
    }
    this->param_propagate_down_.resize(this->blobs_.size(), true);
  }
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    CHECK_EQ(bottom[0]->shape(1), channels_);
    top[0]->ReshapeLike(*bottom[0]);
  }
  virtual inline const char* type() const { return "ChannelGain"; }
  virtual inline int ExactNumBottomBlobs() const { return 1; }
  virtual inline int ExactNumTopBlobs() const { return 1; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    const int inner = bottom[0]->count(2);
    for (int i = 0; i < bottom[0]->count(); ++i) {
      const int c = i / inner % channels_;
      top[0]->mutable_cpu_data()[i] = bottom[0]->cpu_data()[i] * this->blobs_[0]->cpu_data()[c] +
                                      this->blobs_[1]->cpu_data()[c];
    }
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    const int inner = bottom[0]->count(2);
    const Dtype* top_diff = top[0]->cpu_diff();
    const Dtype* bottom_data = bottom[0]->cpu_data();
    for (int i = 0; i < bottom[0]->count(); ++i) {
      const int c = i / inner % channels_;
      if (this->param_propagate_down_[0]) {
        this->blobs_[0]->mutable_cpu_diff()[c] += top_diff[i] * bottom_data[i];
      }
      if (this->param_propagate_down_[1]) this->blobs_[1]->mutable_cpu_diff()[c] += top_diff[i];
    }
    if (!propagate_down[0]) return;
    Dtype* bottom_diff = bottom[0]->mutable_cpu_diff();
    for (int i = 0; i < bottom[0]->count(); ++i) {
      bottom_diff[i] = top_diff[i] * this->blobs_[0]->cpu_data()[i / inner % channels_];
    }
  }

  int channels_;
};

INSTANTIATE_CLASS(ChannelGainLayer);
REGISTER_LAYER_CLASS(ChannelGain);

}  // namespace caffe
