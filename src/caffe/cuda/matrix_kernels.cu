#include "caffe/cuda/channel_rows.cuh"
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

Covered CoveredBy(const ChannelExtents& extents) {
  return {extents.outer, extents.channels, extents.inner};
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

// The same by packs of channels, for channels-last tensors.
template <typename T, int N>
struct BiasAndReluRows {
  using A = Accum<T>;
  static constexpr int kUnrolled = 4;
  Numbers bias;
  A negative_slope;
  T* y;

  __device__ WidePack<T, N> Channels(int pack) const {
    WidePack<T, N> biases;
#pragma unroll
    for (int k = 0; k < N; ++k)
      biases.values[k] = bias.GetOr(static_cast<int64_t>(pack) * N + k, A(0));
    return biases;
  }
  __device__ Pack<T, N> Load(int64_t i) const {
    return PackAt<T, N>(y, i);
  }
  __device__ void Store(const WidePack<T, N>& biases, const Pack<T, N>& loaded, int64_t i) const {
    WidePack<T, N> value = Widen(loaded);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const A sum = value.values[k] + biases.values[k];
      value.values[k] = sum > A(0) ? sum : sum * negative_slope + A(0);
    }
    StorePack(y, i, value);
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

size_t SumChannelsWorkspace(const ChannelExtents& extents) {
  return SumWorkspace<1, double>(CoveredBy(extents));
}

void SumChannels(const KernelContext& ctx, const Matrices& from, const ChannelExtents& extents,
                 bool adds, const Matrices& sums, void* workspace) {
  const Gradient to{{sums.data, sums.dtype}, adds};
  VisitFloat(from.dtype, [&]<typename T>(TypeTag<T>) {
    SumCovered<1, Accum<T>>(ctx, CoveredBy(extents), workspace,
                            AddElement<T>{static_cast<const T*>(from.data)}, StoreSum{to});
  });
}

void AddBiasAndRelu(const KernelContext& ctx, const BiasAndRelu& what, int64_t count,
                    const Matrices& y) {
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    constexpr int N = kPackSize<T>;
    const Numbers bias{what.bias.data, what.bias.dtype};
    const auto slope = static_cast<Accum<T>>(what.negative_slope);
    T* const data = static_cast<T*>(y.data);
    // Without a bias, channels need not be distinguished.
    const int64_t channels = bias.data != nullptr ? what.channels : N;
    const bool has_rows = bias.data == nullptr || what.inner == 1;
    if (has_rows && channels % N == 0 && count % channels == 0 && IsPackAligned<T, N>(data)) {
      MapRows(ctx, count / channels, channels / N, BiasAndReluRows<T, N>{bias, slope, data});
    } else {
      ForEach(ctx, count, BiasAndReluElement<T>{bias, what.channels, what.inner, slope, data});
    }
  });
}

}  // namespace caffe::cuda
