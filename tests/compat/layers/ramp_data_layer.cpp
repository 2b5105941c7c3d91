// A data layer that reads ahead: images 0, 1, 2, ..., transformed, and their numbers as labels. It
// fails at image 1000.
#include <stdexcept>
#include <vector>

#include "caffe/layers/base_data_layer.hpp"

namespace caffe {

template <typename Dtype>
class RampDataLayer : public BasePrefetchingDataLayer<Dtype> {
 public:
  explicit RampDataLayer(const LayerParameter& param)
      : BasePrefetchingDataLayer<Dtype>(param), next_(0) {}
  virtual ~RampDataLayer() { this->StopInternalThread(); }
  virtual void DataLayerSetUp(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>& top) {
    const int batch_size = this->layer_param_.data_param().batch_size();
    vector<int> shape = this->data_transformer_->InferBlobShape(Image());
    this->transformed_data_.Reshape(shape);
    shape[0] = batch_size;
    top[0]->Reshape(shape);
    top[1]->Reshape(vector<int>(1, batch_size));
    for (size_t i = 0; i < this->prefetch_.size(); ++i) {
      this->prefetch_[i]->data_.Reshape(shape);
      this->prefetch_[i]->label_.Reshape(top[1]->shape());
    }
  }
  virtual inline const char* type() const { return "RampData"; }
  virtual inline int ExactNumBottomBlobs() const { return 0; }
  virtual inline int ExactNumTopBlobs() const { return 2; }

 protected:
  virtual void load_batch(Batch<Dtype>* batch) {
    Dtype* top_data = batch->data_.mutable_cpu_data();
    for (int i = 0; i < batch->data_.num(); ++i) {
      if (next_ >= 1000) throw std::runtime_error("the ramp ends at 1000");
      this->transformed_data_.set_cpu_data(top_data + batch->data_.offset(i));
      this->data_transformer_->Transform(Image(), &this->transformed_data_);
      batch->label_.mutable_cpu_data()[i] = static_cast<Dtype>(next_++);
    }
  }

 private:
  Datum Image() const {
    Datum datum;
    datum.set_channels(1);
    datum.set_height(2);
    datum.set_width(2);
    for (int i = 0; i < 4; ++i) datum.add_float_data(static_cast<float>(next_));
    return datum;
  }

  int next_;
};

INSTANTIATE_CLASS(RampDataLayer);
REGISTER_LAYER_CLASS(RampData);

}  // namespace caffe
