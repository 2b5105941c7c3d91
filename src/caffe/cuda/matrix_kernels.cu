#include "caffe/cuda/matrix_kernels.hpp"
#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/cuda/transpose.cuh"

namespace caffe::cuda {
namespace {

template <typename From, typename To>
struct StoreConverted {
  bool adds;

  __device__ void operator()(From value, To& to) const {
    const auto wide = static_cast<Accum<To>>(Wide(value));
    to = To(adds ? Wide(to) + wide : wide);
  }
};

template <typename T>
struct AddElement {
  const T* x;

  __device__ void operator()(int64_t, int64_t i, Sums<1, Accum<T>>& sums) const {
    sums.values[0] += Wide(x[i]);
  }
};

struct StoreSum {
  Gradient to;

  template <typename A>
  __device__ void operator()(int64_t column, const Sums<1, A>& sums) const {
    to.Store(column, sums.values[0]);
  }
};

Covered RowsOf(int64_t rows, int64_t columns) {
  return {rows, columns, 1};
}

template <typename T>
struct BiasAndReluElement {
  Numbers bias;
  int64_t channels, inner;
  Accum<T> negative_slope;
  T* y;

  __device__ void operator()(int64_t i) const {
    using A = Accum<T>;
    const A sum = Wide(y[i]) + bias.GetOr(Remainder(Divide(i, inner), channels), A(0));
    y[i] = T(sum > A(0) ? sum : sum * negative_slope + A(0));
  }
};

}  // namespace

void TransposeMatrices(const KernelContext& ctx, const Matrices& from, int64_t count, int64_t rows,
                       int64_t columns, bool adds, const Matrices& to) {
  VisitFloat(from.dtype, [&]<typename From>(TypeTag<From>) {
    VisitFloat(to.dtype, [&]<typename To>(TypeTag<To>) {
      Transpose(ctx, StoreConverted<From, To>{adds}, static_cast<const From*>(from.data), count,
                rows, columns, static_cast<To*>(to.data));
    });
  });
}

size_t SumRowsWorkspace(int64_t rows, int64_t columns) {
  return SumWorkspace<1, double>(RowsOf(rows, columns));
}

void SumRows(const KernelContext& ctx, const Matrices& from, int64_t rows, int64_t columns,
             bool adds, const Matrices& sums, void* workspace) {
  const Gradient to{{sums.data, sums.dtype}, adds};
  VisitFloat(from.dtype, [&]<typename T>(TypeTag<T>) {
    SumCovered<1, Accum<T>>(ctx, RowsOf(rows, columns), workspace,
                            AddElement<T>{static_cast<const T*>(from.data)}, StoreSum{to});
  });
}

void AddBiasAndRelu(const KernelContext& ctx, const BiasAndRelu& what, int64_t count,
                    const Matrices& y) {
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, count,
            BiasAndReluElement<T>{{what.bias.data, what.bias.dtype},
                                  what.channels,
                                  what.inner,
                                  static_cast<Accum<T>>(what.negative_slope),
                                  static_cast<T*>(y.data)});
  });
}

}  // namespace caffe::cuda
