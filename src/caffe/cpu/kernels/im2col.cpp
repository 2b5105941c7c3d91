#include "caffe/ops/im2col.hpp"

#include <vector>

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Calls fn(column element, image element) for each element of the columns of one image plane and
// one kernel position; image element is -1 in the padding.
template <typename Fn>
void ForColumn(const ops::ConvGeometry& geometry, const Shape& image, const Shape& columns,
               int64_t kernel_index, const Fn& fn) {
  const int axes = geometry.spatial_axes();
  std::vector<int64_t> kernel(axes), position(axes, 0);
  for (int i = axes - 1; i >= 0; --i) {
    kernel[i] = kernel_index % geometry.kernel[i] * geometry.dilation[i] - geometry.pad[i];
    kernel_index /= geometry.kernel[i];
  }
  const int64_t count = columns.count(2);
  for (int64_t element = 0; element < count; ++element) {
    int64_t at = 0;
    for (int i = 0; i < axes && at >= 0; ++i) {
      const int64_t coordinate = position[i] * geometry.stride[i] + kernel[i];
      const bool is_inside = 0 <= coordinate && coordinate < image[2 + i];
      at = is_inside ? at * image[2 + i] + coordinate : -1;
    }
    fn(element, at);
    for (int i = axes - 1; i >= 0 && ++position[i] == columns[2 + i]; --i) position[i] = 0;
  }
}

int64_t KernelSize(const ops::ConvGeometry& geometry) {
  int64_t size = 1;
  for (const int64_t extent : geometry.kernel) size *= extent;
  return size;
}

void Im2col(const ops::Im2col& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const int64_t kernel = KernelSize(op.geometry), plane = x.shape.count(2), out = y.shape.count(2);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ParallelFor(y.shape[0] * y.shape[1], 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = x.as<const T>() + row / kernel * plane;
        T* to = y.as<T>() + row * out;
        ForColumn(op.geometry, x.shape, y.shape, row % kernel,
                  [&](int64_t i, int64_t at) { to[i] = at < 0 ? T(0.0f) : from[at]; });
      }
    });
  });
}

void Col2im(const ops::Col2im& op, const KernelContext& ctx) {
  const TensorView &columns = ctx.input(0), &x = ctx.output(0);
  const int64_t kernel = KernelSize(op.geometry), plane = x.shape.count(2),
                out = columns.shape.count(2);
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    ParallelFor(x.shape[0] * x.shape[1], 1, [&](int64_t begin, int64_t end) {
      std::vector<A> sums(plane);
      for (int64_t c = begin; c < end; ++c) {
        std::fill(sums.begin(), sums.end(), A(0));
        for (int64_t k = 0; k < kernel; ++k) {
          const T* from = columns.as<const T>() + (c * kernel + k) * out;
          ForColumn(op.geometry, x.shape, columns.shape, k, [&](int64_t i, int64_t at) {
            if (at >= 0) sums[at] += static_cast<A>(from[i]);
          });
        }
        for (int64_t i = 0; i < plane; ++i) x.as<T>()[c * plane + i] = T(sums[i]);
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Im2col, Im2col);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Col2im, Col2im);

}  // namespace
}  // namespace caffe::cpu
