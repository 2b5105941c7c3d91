#include <cmath>

#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/row_norm.hpp"

namespace caffe::cuda {
namespace {

// Rows of all axes from `axis` on.
Rows RowsFrom(const Shape& shape, int axis) {
  return {shape.count(0, axis), shape.count(axis), 1};
}

// Returns fn(element index), summed over a row, to each thread of the group.
template <typename Group, typename Fn>
__device__ auto SumRow(const Rows& rows, int64_t row, const Group& group, const Fn& fn) {
  const int64_t offset = rows.Offset(row);
  decltype(fn(offset)) sum = 0;
  for (int64_t i = group.rank(); i < rows.length; i += group.size()) {
    sum += fn(offset + i * rows.step);
  }
  return group.Reduce(Sum{}, sum);
}

template <typename Group, typename Fn>
__device__ void ForRow(const Rows& rows, int64_t row, const Group& group, const Fn& fn) {
  const int64_t offset = rows.Offset(row);
  for (int64_t i = group.rank(); i < rows.length; i += group.size()) fn(offset + i * rows.step);
}

template <typename T>
struct MvnRow {
  using A = Accum<T>;
  Rows rows;
  bool divides, eps_in_root;
  A eps;
  const T* x;
  T* y;
  Numbers deviations;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const A count = static_cast<A>(rows.length);
    const A mean = SumRow(rows, row, group, [this](int64_t i) { return Wide(x[i]); }) / count;
    A deviation = 1;
    if (divides) {
      const A squares = SumRow(rows, row, group, [this, mean](int64_t i) {
        return (Wide(x[i]) - mean) * (Wide(x[i]) - mean);
      });
      const A variance = squares / count;
      deviation = eps_in_root ? std::sqrt(variance + eps) : std::sqrt(variance) + eps;
    }
    ForRow(rows, row, group,
           [this, mean, deviation](int64_t i) { y[i] = T((Wide(x[i]) - mean) / deviation); });
    if (deviations.is_present() && group.rank() == 0) deviations.Set(row, deviation);
  }
};

void Mvn(const ops::Mvn& op, const KernelContext& ctx) {
  const Rows rows = RowsFrom(ctx.input(0).shape, op.axis);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(ctx, rows,
            MvnRow<T>{rows, op.divides, op.eps_in_root, static_cast<Accum<T>>(op.eps),
                      ctx.input(0).as<const T>(), ctx.output(0).as<T>(), OutputNumbers(ctx, 1)});
  });
}

template <typename T>
struct MvnGradRow {
  using A = Accum<T>;
  Rows rows;
  bool divides;
  const T *y, *dy;
  Numbers deviations;
  T* dx;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const A count = static_cast<A>(rows.length);
    const A mean = SumRow(rows, row, group, [this](int64_t i) { return Wide(dy[i]); }) / count;
    if (!divides) {
      ForRow(rows, row, group, [this, mean](int64_t i) { dx[i] = T(Wide(dy[i]) - mean); });
      return;
    }
    const A dot =
        SumRow(rows, row, group, [this](int64_t i) { return Wide(dy[i]) * Wide(y[i]); }) / count;
    const A deviation = deviations.Get<A>(row);
    ForRow(rows, row, group, [this, mean, dot, deviation](int64_t i) {
      dx[i] = T((Wide(dy[i]) - mean - Wide(y[i]) * dot) / deviation);
    });
  }
};

void MvnGrad(const ops::MvnGrad& op, const KernelContext& ctx) {
  const Rows rows = RowsFrom(ctx.output(0).shape, op.axis);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const auto operand = [&](int i) {
      return ctx.has_input(i) ? ctx.input(i).as<const T>() : nullptr;
    };
    ForRows(ctx, rows,
            MvnGradRow<T>{rows, op.divides, operand(0), operand(2), InputNumbers(ctx, 1),
                          ctx.output(0).as<T>()});
  });
}

// Groups of elements that share one norm: an item, or the channels of a position.
Rows NormRows(const TensorDesc& x, bool across_spatial) {
  const Shape& shape = x.shape;
  if (across_spatial) return RowsFrom(shape, 1);
  const int64_t positions = shape.count(2);
  return {shape[0] * positions, shape[1], x.layout == Layout::kPlain ? positions : 1};
}

template <typename T>
struct L2NormalizeRow {
  using A = Accum<T>;
  Rows rows;
  A eps;
  const T* x;
  T* y;
  Numbers norms;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const A norm = std::sqrt(
        SumRow(rows, row, group, [this](int64_t i) { return Wide(x[i]) * Wide(x[i]); }) + eps);
    ForRow(rows, row, group, [this, norm](int64_t i) { y[i] = T(Wide(x[i]) / norm); });
    if (norms.is_present() && group.rank() == 0) norms.Set(row, norm);
  }
};

void L2Normalize(const ops::L2Normalize& op, const KernelContext& ctx) {
  const Rows rows = NormRows(ctx.input(0), op.across_spatial);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(ctx, rows,
            L2NormalizeRow<T>{rows, static_cast<Accum<T>>(op.eps), ctx.input(0).as<const T>(),
                              ctx.output(0).as<T>(), OutputNumbers(ctx, 1)});
  });
}

template <typename T>
struct L2NormalizeGradRow {
  using A = Accum<T>;
  Rows rows;
  const T *y, *dy;
  Numbers norms;
  T* dx;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const A dot = SumRow(rows, row, group, [this](int64_t i) { return Wide(dy[i]) * Wide(y[i]); });
    const A norm = norms.Get<A>(row);
    ForRow(rows, row, group,
           [this, dot, norm](int64_t i) { dx[i] = T((Wide(dy[i]) - Wide(y[i]) * dot) / norm); });
  }
};

void L2NormalizeGrad(const ops::L2NormalizeGrad& op, const KernelContext& ctx) {
  const Rows rows = NormRows(ctx.output(0), op.across_spatial);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(ctx, rows,
            L2NormalizeGradRow<T>{rows, ctx.input(0).as<const T>(), ctx.input(2).as<const T>(),
                                  InputNumbers(ctx, 1), ctx.output(0).as<T>()});
  });
}

template <typename T>
struct RmsNormRow {
  using A = Accum<T>;
  Rows rows;
  A eps;
  const T* x;
  Numbers gamma;
  T* y;
  Numbers rmss;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const A squares =
        SumRow(rows, row, group, [this](int64_t i) { return Wide(x[i]) * Wide(x[i]); });
    const A rms = std::sqrt(squares / static_cast<A>(rows.length) + eps);
    const int64_t first = rows.Offset(row);
    ForRow(rows, row, group, [this, rms, first](int64_t i) {
      y[i] = T(Wide(x[i]) / rms * gamma.GetOr(i - first, A(1)));
    });
    if (rmss.is_present() && group.rank() == 0) rmss.Set(row, rms);
  }
};

void RmsNorm(const ops::RmsNorm& op, const KernelContext& ctx) {
  const Rows rows = RowsFrom(ctx.input(0).shape, op.axis);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(ctx, rows,
            RmsNormRow<T>{rows, static_cast<Accum<T>>(op.eps), ctx.input(0).as<const T>(),
                          InputNumbers(ctx, ops::RmsNorm::kGamma), ctx.output(0).as<T>(),
                          OutputNumbers(ctx, 1)});
  });
}

template <typename T>
struct RmsNormGradRow {
  using A = Accum<T>;
  Rows rows;
  const T* x;
  Numbers rmss;
  const T* dy;
  Numbers gamma;
  T* dx;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const int64_t first = rows.Offset(row);
    const auto scaled = [this, first](int64_t i) {
      return Wide(dy[i]) * gamma.GetOr(i - first, A(1));
    };
    const A dot =
        SumRow(rows, row, group, [this, scaled](int64_t i) { return scaled(i) * Wide(x[i]); });
    const A rms = rmss.Get<A>(row);
    const A slope = dot / static_cast<A>(rows.length) / (rms * rms);
    ForRow(rows, row, group, [this, scaled, slope, rms](int64_t i) {
      dx[i] = T((scaled(i) - Wide(x[i]) * slope) / rms);
    });
  }
};

void RmsNormGrad(const ops::RmsNormGrad& op, const KernelContext& ctx) {
  using Grad = ops::RmsNormGrad;
  const Rows rows = RowsFrom(ctx.output(0).shape, op.axis);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(ctx, rows,
            RmsNormGradRow<T>{rows, ctx.input(Grad::kX).as<const T>(),
                              InputNumbers(ctx, Grad::kRms), ctx.input(Grad::kDy).as<const T>(),
                              InputNumbers(ctx, Grad::kGamma), ctx.output(0).as<T>()});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Mvn, Mvn);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::MvnGrad, MvnGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::L2Normalize, L2Normalize);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::L2NormalizeGrad, L2NormalizeGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::RmsNorm, RmsNorm);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::RmsNormGrad, RmsNormGrad);

}  // namespace
}  // namespace caffe::cuda
