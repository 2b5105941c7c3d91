// A neuron layer: y = x / (1 + |x|).
#include <cmath>
#include <vector>

#include "caffe/layers/neuron_layer.hpp"

namespace caffe {

template <typename Dtype>
class SoftSignLayer : public NeuronLayer<Dtype> {
 public:
  explicit SoftSignLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "SoftSign"; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);
};

template <typename Dtype>
void SoftSignLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom,
                                       const vector<Blob<Dtype>*>& top) {
  const Dtype* bottom_data = bottom[0]->cpu_data();
  Dtype* top_data = top[0]->mutable_cpu_data();
  const int count = bottom[0]->count();
  for (int i = 0; i < count; ++i) top_data[i] = bottom_data[i] / (1 + std::fabs(bottom_data[i]));
}

template <typename Dtype>
void SoftSignLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top,
                                        const vector<bool>& propagate_down,
                                        const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const Dtype* bottom_data = bottom[0]->cpu_data();
  const Dtype* top_diff = top[0]->cpu_diff();
  Dtype* bottom_diff = bottom[0]->mutable_cpu_diff();
  for (int i = 0; i < bottom[0]->count(); ++i) {
    const Dtype slope = 1 / (1 + std::fabs(bottom_data[i]));
    bottom_diff[i] = top_diff[i] * slope * slope;
  }
}

INSTANTIATE_CLASS(SoftSignLayer);
REGISTER_LAYER_CLASS(SoftSign);

}  // namespace caffe
