#include "caffe/compat/caffe/util/im2col.hpp"

#include <algorithm>

namespace caffe::bvlc {
namespace {

// Calls fn(column element, image element) for each element of the columns; the image element is -1
// outside the image.
template <typename Fn>
void ForEachElement(int axes, const int* im_shape, const int* col_shape, const int* kernel_shape,
                    const int* pad, const int* stride, const int* dilation, Fn fn) {
  int kernel_size = 1, outputs = 1;
  for (int i = 0; i < axes; ++i) kernel_size *= kernel_shape[i], outputs *= col_shape[i + 1];
  const int rows = im_shape[0] * kernel_size;
  for (int row = 0; row < rows; ++row) {
    for (int output = 0; output < outputs; ++output) {
      int tap = row % kernel_size, place = output, element = 0, step = 1;
      bool is_inside = true;
      for (int i = axes - 1; i >= 0; --i) {
        const int at =
            place % col_shape[i + 1] * stride[i] - pad[i] + tap % kernel_shape[i] * dilation[i];
        is_inside = is_inside && at >= 0 && at < im_shape[i + 1];
        element += at * step;
        step *= im_shape[i + 1];
        place /= col_shape[i + 1];
        tap /= kernel_shape[i];
      }
      fn(row * outputs + output, is_inside ? row / kernel_size * step + element : -1);
    }
  }
}

int CountOf(int axes, const int* im_shape) {
  int count = 1;
  for (int i = 0; i <= axes; ++i) count *= im_shape[i];
  return count;
}

int OutputExtent(int extent, int kernel, int pad, int stride, int dilation) {
  return (extent + 2 * pad - (dilation * (kernel - 1) + 1)) / stride + 1;
}

// Arguments that the image functions pass to those for any number of axes.
struct ImageGeometry {
  ImageGeometry(int channels, int height, int width, int kernel_h, int kernel_w, int pad_h,
                int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w)
      : im{channels, height, width},
        kernel{kernel_h, kernel_w},
        pad{pad_h, pad_w},
        stride{stride_h, stride_w},
        dilation{dilation_h, dilation_w},
        col{channels * kernel_h * kernel_w,
            OutputExtent(height, kernel_h, pad_h, stride_h, dilation_h),
            OutputExtent(width, kernel_w, pad_w, stride_w, dilation_w)} {}

  int im[3], kernel[2], pad[2], stride[2], dilation[2], col[3];
};

}  // namespace

template <typename Dtype>
void im2col_nd_cpu(const Dtype* data_im, const int num_spatial_axes, const int* im_shape,
                   const int* col_shape, const int* kernel_shape, const int* pad, const int* stride,
                   const int* dilation, Dtype* data_col) {
  ForEachElement(
      num_spatial_axes, im_shape, col_shape, kernel_shape, pad, stride, dilation,
      [&](int column, int image) { data_col[column] = image < 0 ? Dtype(0) : data_im[image]; });
}

template <typename Dtype>
void col2im_nd_cpu(const Dtype* data_col, const int num_spatial_axes, const int* im_shape,
                   const int* col_shape, const int* kernel_shape, const int* pad, const int* stride,
                   const int* dilation, Dtype* data_im) {
  std::fill_n(data_im, CountOf(num_spatial_axes, im_shape), Dtype(0));
  ForEachElement(num_spatial_axes, im_shape, col_shape, kernel_shape, pad, stride, dilation,
                 [&](int column, int image) {
                   if (image >= 0) data_im[image] += data_col[column];
                 });
}

template <typename Dtype>
void im2col_cpu(const Dtype* data_im, const int channels, const int height, const int width,
                const int kernel_h, const int kernel_w, const int pad_h, const int pad_w,
                const int stride_h, const int stride_w, const int dilation_h, const int dilation_w,
                Dtype* data_col) {
  const ImageGeometry of(channels, height, width, kernel_h, kernel_w, pad_h, pad_w, stride_h,
                         stride_w, dilation_h, dilation_w);
  im2col_nd_cpu(data_im, 2, of.im, of.col, of.kernel, of.pad, of.stride, of.dilation, data_col);
}

template <typename Dtype>
void col2im_cpu(const Dtype* data_col, const int channels, const int height, const int width,
                const int kernel_h, const int kernel_w, const int pad_h, const int pad_w,
                const int stride_h, const int stride_w, const int dilation_h, const int dilation_w,
                Dtype* data_im) {
  const ImageGeometry of(channels, height, width, kernel_h, kernel_w, pad_h, pad_w, stride_h,
                         stride_w, dilation_h, dilation_w);
  col2im_nd_cpu(data_col, 2, of.im, of.col, of.kernel, of.pad, of.stride, of.dilation, data_im);
}

#define CAFFE_INSTANTIATE_IM2COL(T)                                                             \
  template void im2col_cpu<T>(const T*, const int, const int, const int, const int, const int,  \
                              const int, const int, const int, const int, const int, const int, \
                              T*);                                                              \
  template void col2im_cpu<T>(const T*, const int, const int, const int, const int, const int,  \
                              const int, const int, const int, const int, const int, const int, \
                              T*);                                                              \
  template void im2col_nd_cpu<T>(const T*, const int, const int*, const int*, const int*,       \
                                 const int*, const int*, const int*, T*);                       \
  template void col2im_nd_cpu<T>(const T*, const int, const int*, const int*, const int*,       \
                                 const int*, const int*, const int*, T*)
CAFFE_INSTANTIATE_IM2COL(float);
CAFFE_INSTANTIATE_IM2COL(double);
#undef CAFFE_INSTANTIATE_IM2COL

}  // namespace caffe::bvlc
