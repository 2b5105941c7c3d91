// Shared code of batch normalization of channels-last images for training and inference; vectorized
// over channels.
#pragma once

#include <algorithm>

#include "caffe/cpu/kernels/channels_last.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe::cpu::channels_last {

template <typename T>
inline CAFFE_FORCE_INLINE float FloatAt(const T* x, int64_t i) {
  return static_cast<float>(x[i]);
}

template <typename T, bool kHasRelu, bool kHasResidual>
CAFFE_CPU_CLONES void NormaliseRows(const T* x, const T* residual, int64_t rows, int64_t channels,
                                    const float* factor, const float* shift, T* y) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = r * channels;
    for (int64_t c = 0; c < channels; ++c) {
      float value = FloatAt(x, row + c) * factor[c] + shift[c];
      if constexpr (kHasResidual) value += FloatAt(residual, row + c);
      if constexpr (kHasRelu) value = value > 0 ? value : 0.0f * value + 0.0f;  // NaN stays
      y[row + c] = T(value);
    }
  }
}

// Workspace: per thread two double and two float rows, then four float rows for all.
struct NormWorkspace {
  NormWorkspace(void* memory, int threads, int64_t channels)
      : channels(channels), threads(threads) {
    doubles = static_cast<double*>(memory);
    floats = reinterpret_cast<float*>(doubles + 2 * threads * channels);
    coefficients = floats + 2 * threads * channels;
  }
  static size_t Bytes(int threads, int64_t channels) {
    return static_cast<size_t>(channels) *
           (threads * (2 * sizeof(double) + 2 * sizeof(float)) + 4 * sizeof(float));
  }
  double* sums(int thread) const { return doubles + 2 * thread * channels; }
  float* block(int thread) const { return floats + 2 * thread * channels; }
  float* coefficient(int i) const { return coefficients + i * channels; }

  int64_t channels;
  int threads;
  double* doubles;
  float* floats;
  float* coefficients;
};

template <typename Fn>
void ForRowParts(int64_t rows, int64_t channels, const Fn& fn) {
  ParallelFor(rows, std::max<int64_t>(1, kPointwiseGrain / channels), fn);
}

// y = factor * x + shift, then an epilogue for which IsAddRelu() is true.
template <typename T>
void NormaliseAll(const KernelContext& ctx, const ops::Epilogue& epilogue, const float* factor,
                  const float* shift) {
  const int residual = ops::AddedOperand(epilogue);
  const bool has_relu = ops::EndsInRelu(epilogue);
  const TensorView& x = ctx.input(0);
  const int64_t channels = x.shape[1], rows = x.count() / channels;
  const bool adds = residual >= 0;
  const T* elements = x.as<const T>();
  const T* added = adds ? ctx.input(residual).as<const T>() : elements;
  T* y = ctx.output(0).as<T>();
  const auto run =
      adds ? (has_relu ? NormaliseRows<T, true, true> : NormaliseRows<T, false, true>)
           : (has_relu ? NormaliseRows<T, true, false> : NormaliseRows<T, false, false>);
  ForRowParts(rows, channels, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * channels;
    run(elements + at, added + at, end - begin, channels, factor, shift, y + at);
  });
}

inline float ChannelOr(const KernelContext& ctx, int operand, int64_t c, float otherwise) {
  return ctx.has_input(operand) ? ctx.input(operand).as<const float>()[c] : otherwise;
}

template <typename Op, const auto& kRun>
KernelOrRefusal MakeNorm(const Op& op, const KernelRequest& request) {
  const OperandDesc& x = request.inputs[0];
  if (const auto refusal = RefuseUnlessChannelsLast(request)) return *refusal;
  if (x.count() == 0) return Refusal{"an empty batch"};
  const OperandSet images = op.layout_rule().inputs;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const OperandDesc& operand = request.inputs[i];
    if (operand.present && !images.contains(i) && operand.dtype != DType::kFloat)
      return Refusal{"only float statistics"};
  }
  const int threads = request.device.num_threads();
  return Kernel{"",
                [=, type = x.dtype](const KernelContext& ctx) {
                  VisitNarrow(type, [&](auto tag) { kRun(tag, op, threads, ctx); });
                },
                NormWorkspace::Bytes(threads, x.shape[1])};
}

inline KernelTraits NormTraits() {
  KernelTraits traits = ChannelsLastTraits();
  traits.fuses = ops::IsAddRelu;
  return traits;
}

}  // namespace caffe::cpu::channels_last
