#include <cmath>

#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/ops/reduce.hpp"

namespace caffe::cuda {

// The larger value; if equal, the one with the higher index.
struct Candidate {
  double value;
  int64_t index;

  __device__ friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.value < b.value || (a.value == b.value && a.index < b.index);
  }
};

__device__ inline Candidate ShuffleXor(Candidate candidate, int lanes) {
  return {ShuffleXor(candidate.value, lanes), ShuffleXor(candidate.index, lanes)};
}

namespace {

template <typename T>
struct AddReduced {
  ops::Reduction reduction;
  const T* x;

  __device__ void operator()(int64_t, int64_t i, Sums<1, Accum<T>>& sums) const {
    const Accum<T> value = Wide(x[i]);
    sums.values[0] += reduction == ops::Reduction::kAbsSum         ? std::abs(value)
                      : reduction == ops::Reduction::kSumOfSquares ? value * value
                                                                   : value;
  }
};

struct StoreScaledSum {
  double coefficient;
  Numbers to;

  template <typename A>
  __device__ void operator()(int64_t row, const Sums<1, A>& sums) const {
    to.Set(row, static_cast<A>(coefficient) * sums.values[0]);
  }
};

// Rows along the innermost axes.
Covered ReducedRows(const OperandDesc& x, int64_t rows) {
  return {1, rows, x.count() / std::max<int64_t>(rows, 1)};
}

KernelOrRefusal MakeReduce(const ops::Reduce& op, const KernelRequest& request) {
  const Covered view = ReducedRows(request.inputs[0], request.outputs[0].count());
  const double coefficient = op.reduction == ops::Reduction::kMean
                                 ? op.coefficient / static_cast<double>(view.length())
                                 : op.coefficient;
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    return Kernel{"",
                  [=, reduction = op.reduction](const KernelContext& ctx) {
                    SumCovered<1, Accum<T>>(ctx, view, ctx.workspace,
                                            AddReduced<T>{reduction, ctx.input(0).as<const T>()},
                                            StoreScaledSum{coefficient, OutputNumbers(ctx, 0)});
                  },
                  SumWorkspace<1, Accum<T>>(view)};
  });
}

template <typename T>
struct ReducedGradient {
  using A = Accum<T>;
  ops::Reduction reduction;
  A coefficient;
  int64_t length;
  const T *x, *dy;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const A factor = coefficient * Wide(dy[Divide(i, length)]), value = Wide(x[i]);
    switch (reduction) {
      case ops::Reduction::kSum:
        dx[i] = T(factor);
        break;
      case ops::Reduction::kMean:
        dx[i] = T(factor / static_cast<A>(length));
        break;
      case ops::Reduction::kAbsSum:
        dx[i] = T(value > A(0) ? factor : value < A(0) ? -factor : A(0));
        break;
      case ops::Reduction::kSumOfSquares:
        dx[i] = T(A(2) * factor * value);
        break;
    }
  }
};

void ReduceGrad(const ops::ReduceGrad& op, const KernelContext& ctx) {
  const int64_t rows = ctx.input(1).count(), count = ctx.output(0).count();
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, count,
            ReducedGradient<T>{op.reduction, static_cast<Accum<T>>(op.coefficient),
                               count / std::max<int64_t>(rows, 1), ctx.input(0).as<const T>(),
                               ctx.input(1).as<const T>(), ctx.output(0).as<T>()});
  });
}

// Finds the next best element top_k times, because top_k is small compared with a row. A NaN ranks
// below -infinity: its index is lowered by the row's length.
template <typename T>
struct ArgMaxRow {
  Rows rows;
  int64_t top_k;
  const T* x;
  Numbers indices, values;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const int64_t offset = rows.Offset(row);
    int64_t within;
    const int64_t outer = Divide(row, rows.step, &within);
    Candidate last{static_cast<double>(INFINITY), INT64_MAX};
    for (int64_t k = 0; k < top_k; ++k) {
      Candidate best{-static_cast<double>(INFINITY), INT64_MIN};
      for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
        Candidate candidate{static_cast<double>(x[offset + c * rows.step]), c};
        if (candidate.value != candidate.value)
          candidate = {-static_cast<double>(INFINITY), c - rows.length};
        if (candidate < last && best < candidate) best = candidate;
      }
      best = group.Reduce(Largest{}, best);
      last = best;
      if (group.rank() != 0) continue;
      const int64_t at = (outer * top_k + k) * rows.step + within;
      if (best.index < 0) best = {static_cast<double>(NAN), best.index + rows.length};
      if (indices.is_present()) indices.Set(at, static_cast<double>(best.index));
      if (values.is_present()) values.Set(at, best.value);
    }
  }
};

void ArgMax(const ops::ArgMax& op, const KernelContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  const int64_t inner = shape.count(op.axis + 1);
  const Rows rows{shape.count(0, op.axis) * inner, shape[op.axis], inner};
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(ctx, rows,
            ArgMaxRow<T>{rows, op.top_k, ctx.input(0).as<const T>(), OutputNumbers(ctx, 0),
                         OutputNumbers(ctx, 1)});
  });
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Reduce, "reduce", KernelRank::kReference,
                              MakeReduce);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::ReduceGrad, ReduceGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::ArgMax, ArgMax);

}  // namespace
}  // namespace caffe::cuda
