// BaseConvolutionLayer<Dtype>: common base of convolutions written for Caffe, implemented by im2col
// and matrix products. Cortado's own layers do not use it.
#pragma once

#include <vector>

#include "../filler.hpp"
#include "../layer.hpp"
#include "../util/im2col.hpp"

CAFFE_BVLC_BEGIN
template <typename Dtype>
class BaseConvolutionLayer : public Layer<Dtype> {
 public:
  explicit BaseConvolutionLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);

  virtual inline int MinBottomBlobs() const { return 1; }
  virtual inline int MinTopBlobs() const { return 1; }
  virtual inline bool EqualNumBottomTopBlobs() const { return true; }

 protected:
  // For one item: output = weights * columns of input.
  void forward_cpu_gemm(const Dtype* input, const Dtype* weights, Dtype* output,
                        bool skip_im2col = false);
  void forward_cpu_bias(Dtype* output, const Dtype* bias);
  void backward_cpu_gemm(const Dtype* output, const Dtype* weights, Dtype* input);
  // Adds to `weights`.
  void weight_cpu_gemm(const Dtype* input, const Dtype* output, Dtype* weights);
  void backward_cpu_bias(Dtype* bias, const Dtype* input);

  // Extent of spatial axis i - 1, or the channels for 0.
  inline int input_shape(int i) { return (*bottom_shape_)[channel_axis_ + i]; }
  // True if input and output are swapped (deconvolution).
  virtual bool reverse_dimensions() = 0;
  // Sets output_shape_.
  virtual void compute_output_shape() = 0;

  Blob<int> kernel_shape_, stride_, pad_, dilation_;
  // (channels, extents...) of the input of im2col.
  Blob<int> conv_input_shape_;
  vector<int> col_buffer_shape_;
  vector<int> output_shape_;
  const vector<int>* bottom_shape_;

  int num_spatial_axes_;
  int bottom_dim_, top_dim_;
  int channel_axis_;
  int num_, channels_, group_;
  int out_spatial_dim_;
  int weight_offset_;
  int num_output_;
  bool bias_term_, is_1x1_, force_nd_im2col_;

 private:
  void ReadSizes();
  void im2col(const Dtype* image, Dtype* columns);
  void col2im(const Dtype* columns, Dtype* image);

  int conv_out_channels_, conv_in_channels_, conv_out_spatial_dim_;
  int kernel_dim_, col_offset_, output_offset_;
  vector<int> bottom_shape_copy_;
  Blob<Dtype> col_buffer_, bias_multiplier_;
};

extern template class BaseConvolutionLayer<float>;
extern template class BaseConvolutionLayer<double>;

CAFFE_BVLC_END
