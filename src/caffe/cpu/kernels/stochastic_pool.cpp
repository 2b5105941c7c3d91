#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe::cpu {
namespace {

// Calls fn(output index, first element of the image plane, rows, columns) for each window.
template <typename Fn>
void ForWindows(const ops::PoolGeometry& geometry, const Shape& x, const Shape& y, const Fn& fn) {
  ParallelFor(y[0] * y[1], 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      int64_t at = plane * y[2] * y[3];
      for (int64_t oh = 0; oh < y[2]; ++oh) {
        const ops::PoolWindow rows = ops::WindowAt(geometry, 0, x[2], oh);
        for (int64_t ow = 0; ow < y[3]; ++ow, ++at) {
          fn(at, plane * x[2] * x[3], rows, ops::WindowAt(geometry, 1, x[3], ow));
        }
      }
    }
  });
}

// Calls fn(index within the plane) for each element of a window.
template <typename Fn>
void ForElements(const ops::PoolWindow& rows, const ops::PoolWindow& columns, int64_t width,
                 const Fn& fn) {
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    for (int64_t w = columns.begin; w < columns.end; ++w) fn(h * width + w);
  }
}

void StochasticPool(const ops::StochasticPool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const RandomStream random(ctx.random.seed, op.stream);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    VisitFloat(
        ctx.has_output(1) ? ctx.output(1).dtype : DType::kFloat, [&]<typename M>(TypeTag<M>) {
          M* mask = ctx.has_output(1) ? ctx.output(1).as<M>() : nullptr;
          ForWindows(op.geometry, x.shape, y.shape,
                     [&](int64_t at, int64_t plane, const auto& rows, const auto& columns) {
                       const T* from = x.as<const T>() + plane;
                       double sum = 0;
                       ForElements(rows, columns, x.shape[3],
                                   [&](int64_t i) { sum += static_cast<double>(from[i]); });
                       const double threshold =
                           static_cast<double>(ToUniform(random.Bits(at, ctx.random.pass))) * sum;
                       double reached = 0;
                       int64_t chosen = -1;
                       ForElements(rows, columns, x.shape[3], [&](int64_t i) {
                         if (chosen >= 0 && reached > threshold) return;
                         reached += static_cast<double>(from[i]);
                         chosen = i;
                       });
                       y.as<T>()[at] = chosen < 0 ? T(0.0f) : from[chosen];
                       if (mask != nullptr) mask[at] = M(static_cast<float>(chosen));
                     });
        });
  });
}

template <typename T>
struct Sums {
  double first = 0, second = 0;
  Sums(const T* from, const ops::PoolWindow& rows, const ops::PoolWindow& columns, int64_t width) {
    ForElements(rows, columns, width, [&](int64_t i) {
      const double value = static_cast<double>(from[i]);
      first += value;
      second += value * value;
    });
  }
};

void StochasticPoolMean(const ops::StochasticPoolMean& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForWindows(op.geometry, x.shape, y.shape,
               [&](int64_t at, int64_t plane, const auto& rows, const auto& columns) {
                 const Sums<T> sums(x.as<const T>() + plane, rows, columns, x.shape[3]);
                 y.as<T>()[at] = T(sums.first > 0 ? sums.second / sums.first : 0.0);
               });
  });
}

void StochasticPoolMeanGrad(const ops::StochasticPoolMeanGrad& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.input(1), &dx = ctx.output(0);
  const int64_t plane_size = x.shape[2] * x.shape[3], outputs = y.shape[2] * y.shape[3];
  VisitFloat(dx.dtype, [&]<typename T>(TypeTag<T>) {
    ParallelFor(x.shape[0] * x.shape[1], 1, [&](int64_t begin, int64_t end) {
      std::vector<double> gradient(plane_size);
      for (int64_t plane = begin; plane < end; ++plane) {
        std::fill(gradient.begin(), gradient.end(), 0.0);
        const T* from = x.as<const T>() + plane * plane_size;
        for (int64_t o = 0; o < outputs; ++o) {
          const ops::PoolWindow rows = ops::WindowAt(op.geometry, 0, x.shape[2], o / y.shape[3]);
          const ops::PoolWindow columns = ops::WindowAt(op.geometry, 1, x.shape[3], o % y.shape[3]);
          const Sums<T> sums(from, rows, columns, x.shape[3]);
          if (!(sums.first > 0)) continue;
          const double mean = static_cast<double>(y.as<const T>()[plane * outputs + o]);
          const double dy = static_cast<double>(ctx.input(2).as<const T>()[plane * outputs + o]);
          ForElements(rows, columns, x.shape[3], [&](int64_t i) {
            gradient[i] += dy * (2 * static_cast<double>(from[i]) - mean) / sums.first;
          });
        }
        for (int64_t i = 0; i < plane_size; ++i)
          dx.as<T>()[plane * plane_size + i] = T(gradient[i]);
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::StochasticPool, StochasticPool);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::StochasticPoolMean, StochasticPoolMean);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::StochasticPoolMeanGrad, StochasticPoolMeanGrad);

}  // namespace
}  // namespace caffe::cpu
