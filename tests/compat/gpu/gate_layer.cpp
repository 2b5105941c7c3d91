#include "gate_layer.hpp"

#include <cmath>
#include <vector>

#include "caffe/util/math_functions.hpp"

namespace caffe {

template <typename Dtype>
void GateLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>&) {
  if (this->blobs_.size() == 0) {
    this->blobs_.resize(1);
    this->blobs_[0].reset(new Blob<Dtype>(vector<int>(1, 1)));
    caffe_set(1, Dtype(1), this->blobs_[0]->mutable_cpu_data());
  }
  this->param_propagate_down_.resize(1, true);
}

template <typename Dtype>
void GateLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom,
                               const vector<Blob<Dtype>*>& top) {
  NeuronLayer<Dtype>::Reshape(bottom, top);
  gate_.ReshapeLike(*bottom[0]);
  gain_diff_.ReshapeLike(*bottom[0]);
}

template <typename Dtype>
void GateLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom,
                                   const vector<Blob<Dtype>*>& top) {
  const Dtype gain = this->blobs_[0]->cpu_data()[0];
  const Dtype* x = bottom[0]->cpu_data();
  Dtype* gate = gate_.mutable_cpu_data();
  for (int i = 0; i < bottom[0]->count(); ++i) gate[i] = 1 / (1 + std::exp(-gain * x[i]));
  caffe_mul(bottom[0]->count(), x, gate, top[0]->mutable_cpu_data());
}

template <typename Dtype>
void GateLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top,
                                    const vector<bool>& propagate_down,
                                    const vector<Blob<Dtype>*>& bottom) {
  const Dtype gain = this->blobs_[0]->cpu_data()[0];
  const Dtype *x = bottom[0]->cpu_data(), *gate = gate_.cpu_data(), *dy = top[0]->cpu_diff();
  for (int i = 0; i < bottom[0]->count(); ++i) {
    const Dtype slope = gate[i] * (1 - gate[i]);
    if (this->param_propagate_down_[0])
      this->blobs_[0]->mutable_cpu_diff()[0] += dy[i] * x[i] * x[i] * slope;
    if (propagate_down[0])
      bottom[0]->mutable_cpu_diff()[i] = dy[i] * (gate[i] + gain * x[i] * slope);
  }
}

#ifdef CPU_ONLY
STUB_GPU(GateLayer);
#endif

INSTANTIATE_CLASS(GateLayer);
REGISTER_LAYER_CLASS(Gate);

}  // namespace caffe
