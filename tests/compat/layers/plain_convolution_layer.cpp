// A convolution based on BaseConvolutionLayer, with the same results as type Convolution.
#include <vector>

#include "caffe/layers/base_conv_layer.hpp"

namespace caffe {

template <typename Dtype>
class PlainConvolutionLayer : public BaseConvolutionLayer<Dtype> {
 public:
  explicit PlainConvolutionLayer(const LayerParameter& param)
      : BaseConvolutionLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "PlainConvolution"; }

 protected:
  virtual inline bool reverse_dimensions() { return false; }
  virtual void compute_output_shape() {
    this->output_shape_.clear();
    for (int i = 0; i < this->num_spatial_axes_; ++i) {
      const int extent =
          this->dilation_.cpu_data()[i] * (this->kernel_shape_.cpu_data()[i] - 1) + 1;
      this->output_shape_.push_back(
          (this->input_shape(i + 1) + 2 * this->pad_.cpu_data()[i] - extent) /
              this->stride_.cpu_data()[i] +
          1);
    }
  }
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    const Dtype* weight = this->blobs_[0]->cpu_data();
    for (int n = 0; n < this->num_; ++n) {
      Dtype* top_data = top[0]->mutable_cpu_data() + n * this->top_dim_;
      this->forward_cpu_gemm(bottom[0]->cpu_data() + n * this->bottom_dim_, weight, top_data);
      if (this->bias_term_) this->forward_cpu_bias(top_data, this->blobs_[1]->cpu_data());
    }
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    const Dtype* weight = this->blobs_[0]->cpu_data();
    for (int n = 0; n < this->num_; ++n) {
      const Dtype* top_diff = top[0]->cpu_diff() + n * this->top_dim_;
      if (this->bias_term_ && this->param_propagate_down_[1]) {
        this->backward_cpu_bias(this->blobs_[1]->mutable_cpu_diff(), top_diff);
      }
      if (this->param_propagate_down_[0]) {
        this->weight_cpu_gemm(bottom[0]->cpu_data() + n * this->bottom_dim_, top_diff,
                              this->blobs_[0]->mutable_cpu_diff());
      }
      if (propagate_down[0]) {
        this->backward_cpu_gemm(top_diff, weight,
                                bottom[0]->mutable_cpu_diff() + n * this->bottom_dim_);
      }
    }
  }
};

INSTANTIATE_CLASS(PlainConvolutionLayer);
REGISTER_LAYER_CLASS(PlainConvolution);

}  // namespace caffe
