// A layer that works in place, registered by a creator: y = min(max(x, -1), 1). Backward reads the
// top's values, because the bottom's are overwritten by then.
#include <algorithm>
#include <vector>

#include "caffe/layer_factory.hpp"
#include "caffe/layers/neuron_layer.hpp"

namespace caffe {

template <typename Dtype>
class HardClampLayer : public NeuronLayer<Dtype> {
 public:
  explicit HardClampLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "HardClamp"; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    const Dtype* in = bottom[0]->cpu_data();
    Dtype* out = top[0]->mutable_cpu_data();
    for (int i = 0; i < bottom[0]->count(); ++i) {
      out[i] = std::min(std::max(in[i], Dtype(-1)), Dtype(1));
    }
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    if (!propagate_down[0]) return;
    const Dtype* out = top[0]->cpu_data();
    const Dtype* top_diff = top[0]->cpu_diff();
    Dtype* bottom_diff = bottom[0]->mutable_cpu_diff();
    for (int i = 0; i < bottom[0]->count(); ++i) {
      bottom_diff[i] = top_diff[i] * (out[i] > -1 && out[i] < 1);
    }
  }
};

template <typename Dtype>
shared_ptr<Layer<Dtype> > GetHardClampLayer(const LayerParameter& param) {
  return shared_ptr<Layer<Dtype> >(new HardClampLayer<Dtype>(param));
}

INSTANTIATE_CLASS(HardClampLayer);
REGISTER_LAYER_CREATOR(HardClamp, GetHardClampLayer);

}  // namespace caffe
