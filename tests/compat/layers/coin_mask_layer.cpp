// A layer with code for GPUs, whose .cu is left out of a build for CPUs: in training each value is
// kept or set to 0 at random, with equal probability.
#include <vector>

#include "caffe/layers/neuron_layer.hpp"
#include "caffe/util/math_functions.hpp"

namespace caffe {

template <typename Dtype>
class CoinMaskLayer : public NeuronLayer<Dtype> {
 public:
  explicit CoinMaskLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    NeuronLayer<Dtype>::Reshape(bottom, top);
    mask_.Reshape(bottom[0]->shape());
  }
  virtual inline const char* type() const { return "CoinMask"; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);

  Blob<unsigned int> mask_;
};

template <typename Dtype>
void CoinMaskLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom,
                                       const vector<Blob<Dtype>*>& top) {
  const int count = bottom[0]->count();
  const Dtype* bottom_data = bottom[0]->cpu_data();
  if (this->phase_ == TEST) {
    caffe_copy(count, bottom_data, top[0]->mutable_cpu_data());
    return;
  }
  unsigned int* mask = mask_.mutable_cpu_data();
  caffe_rng_bernoulli(count, Dtype(0.5), mask);
  for (int i = 0; i < count; ++i) top[0]->mutable_cpu_data()[i] = bottom_data[i] * mask[i] * 2;
}

template <typename Dtype>
void CoinMaskLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top,
                                        const vector<bool>& propagate_down,
                                        const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const Dtype* top_diff = top[0]->cpu_diff();
  Dtype* bottom_diff = bottom[0]->mutable_cpu_diff();
  for (int i = 0; i < bottom[0]->count(); ++i) {
    const unsigned int factor = this->phase_ == TEST ? 1 : 2 * mask_.cpu_data()[i];
    bottom_diff[i] = top_diff[i] * factor;
  }
}

#ifdef CPU_ONLY
STUB_GPU(CoinMaskLayer);
#endif

INSTANTIATE_CLASS(CoinMaskLayer);
REGISTER_LAYER_CLASS(CoinMask);

}  // namespace caffe
