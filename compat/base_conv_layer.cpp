#include "caffe/compat/caffe/layers/base_conv_layer.hpp"

#include <algorithm>

#include "caffe/error.hpp"

namespace caffe::bvlc {
namespace {

// Reads one number per spatial axis: from the fields for height and width, from the list (a single
// number holds for all axes), or the default.
template <typename List>
void FillSizes(const char* field, bool has_2d, int height, int width, const List& list,
               int by_default, int axes, int least, Blob<int>* sizes) {
  sizes->Reshape(vector<int>{std::max(axes, 1)});
  int* const out = sizes->mutable_cpu_data();
  Require(!has_2d || (axes == 2 && list.size() == 0), "convolution_param: ", field,
          " is given for height and width of ", axes, " axes, or twice");
  Require(list.size() <= 1 || list.size() == axes, "convolution_param: ", field, " has ",
          list.size(), " numbers for ", axes, " spatial axes; give one or one each");
  for (int i = 0; i < axes; ++i) {
    out[i] = has_2d            ? (i == 0 ? height : width)
             : list.empty()    ? by_default
             : list.size() > 1 ? static_cast<int>(list.Get(i))
                               : static_cast<int>(list.Get(0));
    Require(out[i] >= least, "convolution_param: ", field, " is ", out[i], "; it must be at least ",
            least);
  }
}

}  // namespace

template <typename Dtype>
void BaseConvolutionLayer<Dtype>::ReadSizes() {
  const ConvolutionParameter& conv = this->layer_param_.convolution_param();
  const int axes = num_spatial_axes_;
  FillSizes("kernel_size", conv.has_kernel_h() || conv.has_kernel_w(), conv.kernel_h(),
            conv.kernel_w(), conv.kernel_size(), 0, axes, 1, &kernel_shape_);
  FillSizes("stride", conv.has_stride_h() || conv.has_stride_w(), conv.stride_h(), conv.stride_w(),
            conv.stride(), 1, axes, 1, &stride_);
  FillSizes("pad", conv.has_pad_h() || conv.has_pad_w(), conv.pad_h(), conv.pad_w(), conv.pad(), 0,
            axes, 0, &pad_);
  FillSizes("dilation", false, 0, 0, conv.dilation(), 1, axes, 1, &dilation_);
  is_1x1_ = true;
  for (int i = 0; i < axes; ++i) {
    is_1x1_ = is_1x1_ && kernel_shape_.cpu_data()[i] == 1 && stride_.cpu_data()[i] == 1 &&
              pad_.cpu_data()[i] == 0;
  }
}

template <typename Dtype>
void BaseConvolutionLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom,
                                             const vector<Blob<Dtype>*>&) {
  const ConvolutionParameter& conv = this->layer_param_.convolution_param();
  force_nd_im2col_ = conv.force_nd_im2col();
  channel_axis_ = bottom[0]->CanonicalAxisIndex(conv.axis());
  num_spatial_axes_ = bottom[0]->num_axes() - channel_axis_ - 1;
  ReadSizes();
  channels_ = bottom[0]->shape(channel_axis_);
  num_output_ = static_cast<int>(conv.num_output());
  group_ = static_cast<int>(conv.group());
  Require(num_output_ > 0 && group_ > 0 && channels_ % group_ == 0 && num_output_ % group_ == 0,
          "convolution_param: ", channels_, " channels and num_output ", num_output_,
          " must be positive multiples of group ", group_);
  const bool reverse = reverse_dimensions();
  conv_out_channels_ = reverse ? channels_ : num_output_;
  conv_in_channels_ = reverse ? num_output_ : channels_;
  bias_term_ = conv.bias_term();
  vector<int> weight_shape = {conv_out_channels_, conv_in_channels_ / group_};
  for (int i = 0; i < num_spatial_axes_; ++i) weight_shape.push_back(kernel_shape_.cpu_data()[i]);
  if (this->blobs_.empty()) {
    this->blobs_.resize(bias_term_ ? 2 : 1);
    this->blobs_[0].reset(new Blob<Dtype>(weight_shape));
    std::unique_ptr<Filler<Dtype>>(GetFiller<Dtype>(conv.weight_filler()))
        ->Fill(this->blobs_[0].get());
    if (bias_term_) {
      this->blobs_[1].reset(new Blob<Dtype>(vector<int>{num_output_}));
      std::unique_ptr<Filler<Dtype>>(GetFiller<Dtype>(conv.bias_filler()))
          ->Fill(this->blobs_[1].get());
    }
  }
  Require(this->blobs_[0]->shape() == weight_shape, "the weights have shape ",
          this->blobs_[0]->shape_string(), ", which does not fit convolution_param");
  kernel_dim_ = this->blobs_[0]->count(1);
  weight_offset_ = conv_out_channels_ * kernel_dim_ / group_;
  this->param_propagate_down_.assign(this->blobs_.size(), true);
}

template <typename Dtype>
void BaseConvolutionLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom,
                                          const vector<Blob<Dtype>*>& top) {
  num_ = bottom[0]->count(0, channel_axis_);
  Require(bottom[0]->shape(channel_axis_) == channels_, "bottom 0 has ",
          bottom[0]->shape(channel_axis_), " channels, the weights are for ", channels_);
  for (const Blob<Dtype>* one : bottom) {
    Require(one->shape() == bottom[0]->shape(), "all bottoms must have one shape, not ",
            bottom[0]->shape_string(), " and ", one->shape_string());
  }
  bottom_shape_copy_ = bottom[0]->shape();
  bottom_shape_ = &bottom_shape_copy_;
  compute_output_shape();
  vector<int> top_shape(bottom_shape_->begin(), bottom_shape_->begin() + channel_axis_);
  top_shape.push_back(num_output_);
  top_shape.insert(top_shape.end(), output_shape_.begin(), output_shape_.end());
  for (Blob<Dtype>* one : top) one->Reshape(top_shape);
  const bool reverse = reverse_dimensions();
  out_spatial_dim_ = top[0]->count(channel_axis_ + 1);
  conv_out_spatial_dim_ = reverse ? bottom[0]->count(channel_axis_ + 1) : out_spatial_dim_;
  col_offset_ = kernel_dim_ * conv_out_spatial_dim_;
  output_offset_ = conv_out_channels_ * conv_out_spatial_dim_ / group_;
  conv_input_shape_.Reshape(vector<int>{num_spatial_axes_ + 1});
  int* const conv_input = conv_input_shape_.mutable_cpu_data();
  for (int i = 0; i <= num_spatial_axes_; ++i)
    conv_input[i] = reverse ? top[0]->shape(channel_axis_ + i) : input_shape(i);
  col_buffer_shape_ = {kernel_dim_ * group_};
  for (int i = 0; i < num_spatial_axes_; ++i)
    col_buffer_shape_.push_back(reverse ? input_shape(i + 1) : output_shape_[i]);
  col_buffer_.Reshape(col_buffer_shape_);
  bottom_dim_ = bottom[0]->count(channel_axis_);
  top_dim_ = top[0]->count(channel_axis_);
  if (!bias_term_) return;
  bias_multiplier_.Reshape(vector<int>{out_spatial_dim_});
  caffe_set(out_spatial_dim_, Dtype(1), bias_multiplier_.mutable_cpu_data());
}

template <typename Dtype>
void BaseConvolutionLayer<Dtype>::im2col(const Dtype* image, Dtype* columns) {
  im2col_nd_cpu(image, num_spatial_axes_, conv_input_shape_.cpu_data(), col_buffer_shape_.data(),
                kernel_shape_.cpu_data(), pad_.cpu_data(), stride_.cpu_data(), dilation_.cpu_data(),
                columns);
}
template <typename Dtype>
void BaseConvolutionLayer<Dtype>::col2im(const Dtype* columns, Dtype* image) {
  col2im_nd_cpu(columns, num_spatial_axes_, conv_input_shape_.cpu_data(), col_buffer_shape_.data(),
                kernel_shape_.cpu_data(), pad_.cpu_data(), stride_.cpu_data(), dilation_.cpu_data(),
                image);
}

template <typename Dtype>
void BaseConvolutionLayer<Dtype>::forward_cpu_gemm(const Dtype* input, const Dtype* weights,
                                                   Dtype* output, bool skip_im2col) {
  const Dtype* columns = input;
  if (!is_1x1_) {
    if (!skip_im2col) im2col(input, col_buffer_.mutable_cpu_data());
    columns = col_buffer_.cpu_data();
  }
  for (int g = 0; g < group_; ++g) {
    caffe_cpu_gemm<Dtype>(CblasNoTrans, CblasNoTrans, conv_out_channels_ / group_,
                          conv_out_spatial_dim_, kernel_dim_, 1, weights + weight_offset_ * g,
                          columns + col_offset_ * g, 0, output + output_offset_ * g);
  }
}

template <typename Dtype>
void BaseConvolutionLayer<Dtype>::forward_cpu_bias(Dtype* output, const Dtype* bias) {
  caffe_cpu_gemm<Dtype>(CblasNoTrans, CblasNoTrans, num_output_, out_spatial_dim_, 1, 1, bias,
                        bias_multiplier_.cpu_data(), 1, output);
}

template <typename Dtype>
void BaseConvolutionLayer<Dtype>::backward_cpu_gemm(const Dtype* output, const Dtype* weights,
                                                    Dtype* input) {
  Dtype* const columns = is_1x1_ ? input : col_buffer_.mutable_cpu_data();
  for (int g = 0; g < group_; ++g) {
    caffe_cpu_gemm<Dtype>(CblasTrans, CblasNoTrans, kernel_dim_, conv_out_spatial_dim_,
                          conv_out_channels_ / group_, 1, weights + weight_offset_ * g,
                          output + output_offset_ * g, 0, columns + col_offset_ * g);
  }
  if (!is_1x1_) col2im(columns, input);
}

template <typename Dtype>
void BaseConvolutionLayer<Dtype>::weight_cpu_gemm(const Dtype* input, const Dtype* output,
                                                  Dtype* weights) {
  const Dtype* columns = input;
  if (!is_1x1_) {
    im2col(input, col_buffer_.mutable_cpu_data());
    columns = col_buffer_.cpu_data();
  }
  for (int g = 0; g < group_; ++g) {
    caffe_cpu_gemm<Dtype>(CblasNoTrans, CblasTrans, conv_out_channels_ / group_, kernel_dim_,
                          conv_out_spatial_dim_, 1, output + output_offset_ * g,
                          columns + col_offset_ * g, 1, weights + weight_offset_ * g);
  }
}

template <typename Dtype>
void BaseConvolutionLayer<Dtype>::backward_cpu_bias(Dtype* bias, const Dtype* input) {
  caffe_cpu_gemv<Dtype>(CblasNoTrans, num_output_, out_spatial_dim_, 1, input,
                        bias_multiplier_.cpu_data(), 1, bias);
}

template class BaseConvolutionLayer<float>;
template class BaseConvolutionLayer<double>;

}  // namespace caffe::bvlc
