// A layer that makes the error named in param_str.
#include <stdexcept>
#include <vector>

#include "caffe/layers/neuron_layer.hpp"

namespace caffe {

template <typename Dtype>
class FaultyLayer : public NeuronLayer<Dtype> {
 public:
  explicit FaultyLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {
    Fail("constructor");
  }
  virtual void LayerSetUp(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>&) {
    Fail("LayerSetUp");
    if (Is("null parameter")) this->blobs_.resize(1);
    if (Is("loss weight")) this->layer_param_.add_loss_weight(2);
  }
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    Fail("Reshape");
    NeuronLayer<Dtype>::Reshape(bottom, top);
    if (Is("negative shape")) top[0]->Reshape(vector<int>(1, -4));
    if (Is("bottom's shape")) bottom[0]->Reshape(vector<int>(1, 7));
  }
  virtual inline const char* type() const { return "Faulty"; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    Fail("Forward");
    CHECK(!Is("check")) << "a check of the layer";
    caffe_copy(bottom[0]->count(), bottom[0]->cpu_data(), top[0]->mutable_cpu_data());
    if (Is("longer")) Grow(bottom[0]->shape(), top[0]);
    if (Is("write")) top[0]->mutable_cpu_data()[top[0]->count()] = 1;
    if (Is("read")) top[0]->mutable_cpu_data()[0] = bottom[0]->cpu_data()[bottom[0]->count()];
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>&,
                            const vector<Blob<Dtype>*>& bottom) {
    Fail("Backward");
    if (Is("write diff")) bottom[0]->mutable_cpu_diff()[bottom[0]->count()] = 1;
    if (Is("read diff")) bottom[0]->mutable_cpu_diff()[0] = top[0]->cpu_diff()[-1];
  }

 private:
  bool Is(const char* fault) const {
    return this->layer_param_.python_param().param_str() == fault;
  }
  void Fail(const char* method) const {
    if (Is(method)) throw std::runtime_error("nothing works");
  }
  // Like layers that know the number of their results only after computing them.
  void Grow(vector<int> shape, Blob<Dtype>* top) const {
    shape[0] += 3;
    top->Reshape(shape);
    caffe_set(top->count(), Dtype(5), top->mutable_cpu_data());
  }
};

INSTANTIATE_CLASS(FaultyLayer);
REGISTER_LAYER_CLASS(Faulty);

}  // namespace caffe
