// A layer with options in param_str: y = a0 + a1 x + a2 x^2 + ..., "a0 a1 a2".
#include <sstream>
#include <stdexcept>
#include <vector>

#include "caffe/layers/neuron_layer.hpp"

namespace caffe {

template <typename Dtype>
class PolynomialLayer : public NeuronLayer<Dtype> {
 public:
  explicit PolynomialLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>&) {
    std::istringstream text(this->layer_param_.python_param().param_str());
    for (Dtype a; text >> a;) coefficients_.push_back(a);
    if (coefficients_.empty()) throw std::invalid_argument("param_str has no coefficients");
  }
  virtual inline const char* type() const { return "Polynomial"; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    for (int i = 0; i < bottom[0]->count(); ++i) {
      const Dtype x = bottom[0]->cpu_data()[i];
      Dtype y = 0;
      for (size_t k = coefficients_.size(); k-- > 0;) y = y * x + coefficients_[k];
      top[0]->mutable_cpu_data()[i] = y;
    }
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    if (!propagate_down[0]) return;
    for (int i = 0; i < bottom[0]->count(); ++i) {
      const Dtype x = bottom[0]->cpu_data()[i];
      Dtype slope = 0;
      for (size_t k = coefficients_.size(); k-- > 1;) slope = slope * x + k * coefficients_[k];
      bottom[0]->mutable_cpu_diff()[i] = slope * top[0]->cpu_diff()[i];
    }
  }

  vector<Dtype> coefficients_;
};

INSTANTIATE_CLASS(PolynomialLayer);
REGISTER_LAYER_CLASS(Polynomial);

}  // namespace caffe
