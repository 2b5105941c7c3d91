#include "caffe/ops/pool.hpp"

#include <limits>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Strides of an image tensor in elements, for either layout.
struct ImageStrides {
  int64_t item, channel, row, column;

  explicit ImageStrides(const TensorView& x) {
    const int64_t c = x.shape[1], h = x.shape[2], w = x.shape[3];
    item = c * h * w;
    const bool plain = x.layout == Layout::kPlain;
    channel = plain ? h * w : 1;
    row = plain ? w : w * c;
    column = plain ? 1 : c;
  }
};

// Calls fn(n, c) for each plane; threads share the planes.
template <typename Fn>
void ForEachPlane(const Shape& shape, const Fn& fn) {
  ParallelFor(shape[0] * shape[1], 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) fn(plane / shape[1], plane % shape[1]);
  });
}

// Stores a mask element; the mask may have bytes.
void SetMask(const TensorView& mask, int64_t i, int code) {
  if (mask.dtype == DType::kUInt8) {
    mask.as<uint8_t>()[i] = static_cast<uint8_t>(code);
  } else {
    SetElement(mask, i, code);
  }
}
int64_t MaskAt(const TensorView& mask, int64_t i) {
  if (mask.dtype == DType::kUInt8) return mask.as<const uint8_t>()[i];
  return static_cast<int64_t>(ElementOf(mask, i));
}

void MaxPool(const ops::MaxPool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const int64_t height = x.shape[2], width = x.shape[3];
  const ImageStrides in(x), out(y);
  const ops::MaskCode code(op.geometry, width,
                           ctx.has_output(1) ? ctx.output(1).dtype : DType::kFloat);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    ForEachPlane(y.shape, [&](int64_t n, int64_t c) {
      const T* plane = x.as<const T>() + n * in.item + c * in.channel;
      for (int64_t oh = 0; oh < y.shape[2]; ++oh) {
        const ops::PoolWindow rows = ops::WindowAt(op.geometry, 0, height, oh);
        for (int64_t ow = 0; ow < y.shape[3]; ++ow) {
          const ops::PoolWindow columns = ops::WindowAt(op.geometry, 1, width, ow);
          A best = -std::numeric_limits<float>::max();
          int winner = code.none();
          for (int64_t h = rows.begin; h < rows.end; ++h) {
            for (int64_t w = columns.begin; w < columns.end; ++w) {
              const A value = static_cast<A>(plane[h * in.row + w * in.column]);
              if (value > best) best = value, winner = code.At(oh, ow, h, w);
            }
          }
          const int64_t at = n * out.item + c * out.channel + oh * out.row + ow * out.column;
          y.as<T>()[at] = T(best);
          if (ctx.has_output(1)) SetMask(ctx.output(1), at, winner);
        }
      }
    });
  });
}

void MaxPoolGrad(const ops::MaxPoolGrad& op, const KernelContext& ctx) {
  const TensorView &mask = ctx.input(0), &dy = ctx.input(1), &dx = ctx.output(0);
  const int64_t width = dx.shape[3];
  const ImageStrides in(dx), out(dy);
  const ops::MaskCode code(op.geometry, width, mask.dtype);
  VisitFloat(dx.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    ForEachPlane(dy.shape, [&](int64_t n, int64_t c) {
      T* plane = dx.as<T>() + n * in.item + c * in.channel;
      for (int64_t h = 0; h < dx.shape[2]; ++h) {
        for (int64_t w = 0; w < width; ++w) plane[h * in.row + w * in.column] = T(A(0));
      }
      for (int64_t oh = 0; oh < dy.shape[2]; ++oh) {
        for (int64_t ow = 0; ow < dy.shape[3]; ++ow) {
          const int64_t at = n * out.item + c * out.channel + oh * out.row + ow * out.column;
          const int64_t winner = MaskAt(mask, at);
          if (winner == code.none()) continue;
          const int64_t where = code.Index(oh, ow, winner);
          T& sum = plane[where / width * in.row + where % width * in.column];
          sum = T(static_cast<A>(sum) + static_cast<A>(dy.as<const T>()[at]));
        }
      }
    });
  });
}

void AvePool(const ops::AvePool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const ImageStrides in(x), out(y);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    ForEachPlane(y.shape, [&](int64_t n, int64_t c) {
      const T* plane = x.as<const T>() + n * in.item + c * in.channel;
      for (int64_t oh = 0; oh < y.shape[2]; ++oh) {
        const ops::PoolWindow rows = ops::WindowAt(op.geometry, 0, x.shape[2], oh);
        for (int64_t ow = 0; ow < y.shape[3]; ++ow) {
          const ops::PoolWindow columns = ops::WindowAt(op.geometry, 1, x.shape[3], ow);
          A sum = 0;
          for (int64_t h = rows.begin; h < rows.end; ++h) {
            for (int64_t w = columns.begin; w < columns.end; ++w) {
              sum += static_cast<A>(plane[h * in.row + w * in.column]);
            }
          }
          y.as<T>()[n * out.item + c * out.channel + oh * out.row + ow * out.column] =
              T(sum / static_cast<A>(rows.size * columns.size));
        }
      }
    });
  });
}

void AvePoolGrad(const ops::AvePoolGrad& op, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(0), &dx = ctx.output(0);
  const ImageStrides in(dx), out(dy);
  VisitFloat(dx.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    ForEachPlane(dy.shape, [&](int64_t n, int64_t c) {
      T* plane = dx.as<T>() + n * in.item + c * in.channel;
      for (int64_t h = 0; h < dx.shape[2]; ++h) {
        for (int64_t w = 0; w < dx.shape[3]; ++w) plane[h * in.row + w * in.column] = T(A(0));
      }
      for (int64_t oh = 0; oh < dy.shape[2]; ++oh) {
        const ops::PoolWindow rows = ops::WindowAt(op.geometry, 0, dx.shape[2], oh);
        for (int64_t ow = 0; ow < dy.shape[3]; ++ow) {
          const ops::PoolWindow columns = ops::WindowAt(op.geometry, 1, dx.shape[3], ow);
          const int64_t at = n * out.item + c * out.channel + oh * out.row + ow * out.column;
          const A share =
              static_cast<A>(dy.as<const T>()[at]) / static_cast<A>(rows.size * columns.size);
          for (int64_t h = rows.begin; h < rows.end; ++h) {
            for (int64_t w = columns.begin; w < columns.end; ++w) {
              T& sum = plane[h * in.row + w * in.column];
              sum = T(static_cast<A>(sum) + share);
            }
          }
        }
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::MaxPool, MaxPool);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::MaxPoolGrad, MaxPoolGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::AvePool, AvePool);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::AvePoolGrad, AvePoolGrad);

}  // namespace
}  // namespace caffe::cpu
