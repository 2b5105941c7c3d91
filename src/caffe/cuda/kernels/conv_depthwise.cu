// Depthwise convolutions and their gradients at the input, of channels-last images. They move more
// data than they compute, so each thread keeps a cell of neighbouring results in registers, and
// reads each of their pixels once. The filters of a block's channels are in shared memory.
#include "caffe/cuda/entries.hpp"
#include "caffe/cuda/gradient_entries.cuh"
#include "caffe/cuda/kernels/depthwise_packs.cuh"
#include "caffe/cuda/numbers.cuh"

namespace caffe::cuda {
namespace {

// The filters of a tile in shared memory, as floats: a row of channels for each tap, then one of
// biases.
template <int N>
class DepthwiseFilters {
 public:
  using Channels = Pack<float, N>;
  static constexpr int kMostBytes = 48 << 10;
  // Number of packs for a tile with this many columns.
  static constexpr int Size(int taps, int columns) { return (taps + 1) * Pitch(columns); }
  // Maximum number of columns whose filters fit.
  static int64_t MostColumns(int64_t taps) {
    const int64_t column = (taps + 1) * static_cast<int64_t>(sizeof(Channels));
    return std::min<int64_t>(kMostBytes / column - 1, kWarpThreads);
  }

  __device__ DepthwiseFilters(Channels* shared, const DepthwiseTiles& tiles)
      : rows_(shared), pitch_(Pitch(tiles.columns)), column_(tiles.column()) {}

  // Fills the block's shared memory. In `w` the taps of a channel are neighbours, in either layout.
  template <typename T>
  __device__ void Load(const T* w, const Numbers& bias, const Divisor& taps,
                       const DepthwiseTiles& tiles) const {
    const uint32_t first = tiles.tile() * tiles.columns * N;
    const uint32_t count = std::min<uint32_t>(tiles.columns * N, tiles.packs * N - first);
    const T* const from = w + static_cast<int64_t>(first) * taps.value;
    for (uint32_t i = threadIdx.x; i < count * taps.value; i += blockDim.x) {
      uint32_t tap;
      const uint32_t channel = taps.Divide(i, &tap);
      Set(tap, channel, Wide(from[i]));
    }
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x)
      Set(taps.value, i, bias.GetOr(int64_t{first} + i, 0.F));
  }

  // The thread's channels of a row.
  __device__ Channels operator[](int row) const { return rows_[row * pitch_ + column_]; }

 private:
  // One more than needed, so that taps of a channel are in different banks.
  static constexpr CAFFE_HOST_DEVICE int Pitch(int columns) { return columns + 1; }
  __device__ void Set(uint32_t row, uint32_t channel, float value) const {
    rows_[row * pitch_ + channel / N].values[channel % N] = value;
  }

  Channels* rows_;
  int pitch_, column_;
};

// The epilogue of a forward pass: at most a ReLU.
template <typename T>
struct DepthwiseRelu {
  float slope = 1;

  explicit DepthwiseRelu(const ops::Epilogue& epilogue) {
    if (!epilogue.empty()) slope = epilogue[0].a;
  }
  template <int N>
  __device__ WidePack<T, N> ApplyPack(int64_t, WidePack<T, N> sums) const {
#pragma unroll
    for (float& sum : sums.values) sum = sum > 0 ? sum : sum * slope + 0.F;
    return sums;
  }
};

// Keeps the compiler from holding the filters of several rows in registers, where they do not fit.
__device__ inline void KeepOrder() {
#ifdef __CUDA_ARCH__
  asm volatile("" ::: "memory");
#endif
}

enum class ConvPass { kForward, kGradient };

// Operands of both passes: the source is x and the result y, or dy and dx.
template <typename T, typename Epilogue>
struct DepthwiseOperands {
  const TensorView &source, &result, &w;
  Numbers bias;
  Epilogue epilogue;

  template <int N>
  bool AreAligned() const {
    return IsPackAligned<T, N>(source.as<T>()) && IsPackAligned<T, N>(result.as<T>());
  }
};

// Cells of kRows x kColumns results for filters of K x K and a stride of S.
template <typename T, int K, int S, ConvPass kPass, typename Epilogue>
class DepthwiseCells {
 public:
  static constexpr int N = kDepthwisePack;
  static constexpr bool kIsForward = kPass == ConvPass::kForward;
  static constexpr int kRows = 2, kColumns = kIsForward ? 4 / S : 4;
  static constexpr int kFilterPacks = DepthwiseFilters<N>::Size(K * K, kWarpThreads);

  DepthwiseCells(const ops::ConvGeometry& geometry, const DepthwiseOperands<T, Epilogue>& operands)
      : source_(operands.source, N),
        result_(operands.result, N),
        rows_(geometry, 0, result_.height),
        columns_(geometry, 1, result_.width),
        taps_(K * K),
        from_(operands.source.template as<const T>()),
        w_(operands.w.template as<const T>()),
        bias_(operands.bias),
        epilogue_(operands.epilogue),
        to_(operands.result.template as<T>()) {}

  int64_t cells(int64_t items) const { return items * rows_.cells.value * columns_.cells.value; }
  int packs() const { return result_.packs; }

  __device__ void Load(const DepthwiseFilters<N>& filters, const DepthwiseTiles& tiles) const {
    filters.Load(w_, bias_, taps_, tiles);
  }

  __device__ void operator()(uint32_t cell, uint32_t pack,
                             const DepthwiseFilters<N>& filters) const {
    uint32_t across, down;
    const uint32_t item = rows_.cells.Divide(columns_.cells.Divide(cell, &across), &down);
    const int top = rows_.Source(down), left = columns_.Source(across);
    MaskedLine columns[kSourceColumns];
#pragma unroll
    for (int j = 0; j < kSourceColumns; ++j) columns[j] = {left + j, source_.width};
    WidePack<T, N> sums[kRows][kColumns];
    const Pack<float, N> bias = filters[K * K];
#pragma unroll
    for (int a = 0; a < kRows; ++a) {
#pragma unroll
      for (int b = 0; b < kColumns; ++b) {
#pragma unroll
        for (int k = 0; k < N; ++k) sums[a][b].values[k] = bias.values[k];
      }
    }
#pragma unroll
    for (int r = 0; r < kSourceRows; ++r) {
      const MaskedLine row(top + r, source_.height);
      if constexpr (K > 3) KeepOrder();
      const uint32_t image_row = source_.Row(item, row.at);
      Pack<T, N> loaded[kSourceColumns];
#pragma unroll
      for (int j = 0; j < kSourceColumns; ++j)
        loaded[j] = PackAt<T, N>(from_, source_.At(image_row, columns[j].at, pack));
#pragma unroll
      for (int j = 0; j < kSourceColumns; ++j)
        AddPixel(r, j, Widen(Masked(loaded[j], row.mask & columns[j].mask)), filters, sums);
    }
    Store(item, down, across, pack, sums);
  }

 private:
  // In a gradient, windows that begin up to kBack positions before a pixel reach it.
  static constexpr int kBack = (K - 1) / S;
  static constexpr int kSourceRows = kIsForward ? (kRows - 1) * S + K : kBack + kRows / S;
  static constexpr int kSourceColumns = kIsForward ? (kColumns - 1) * S + K : kBack + kColumns / S;

  // Along an axis: cells, and how their first source and result lie.
  template <int kResults>
  struct Axis {
    Divisor cells;
    int pad, skipped;

    Axis(const ops::ConvGeometry& geometry, int axis, int results)
        : pad(static_cast<int>(geometry.pad[axis])), skipped(kIsForward ? 0 : pad % S) {
      cells = Divisor((results + skipped + kResults - 1) / kResults);
    }
    __device__ int Source(uint32_t cell) const {
      if constexpr (kIsForward) return static_cast<int>(cell) * (kResults * S) - pad;
      return static_cast<int>(cell) * (kResults / S) + pad / S - kBack;
    }
    __device__ int Result(uint32_t cell) const {
      return static_cast<int>(cell) * kResults - skipped;
    }
  };

  // The tap along an axis that leads from a cell's source to its result; none if out of range.
  static constexpr CAFFE_HOST_DEVICE int Tap(int source, int result) {
    return kIsForward ? source - result * S : result + (kBack - source) * S;
  }

  __device__ void AddPixel(int r, int j, const WidePack<T, N>& x,
                           const DepthwiseFilters<N>& filters,
                           WidePack<T, N> (&sums)[kRows][kColumns]) const {
#pragma unroll
    for (int a = 0; a < kRows; ++a) {
      const int down = Tap(r, a);
      if (down < 0 || down >= K) continue;
#pragma unroll
      for (int b = 0; b < kColumns; ++b) {
        const int across = Tap(j, b);
        if (across < 0 || across >= K) continue;
        const Pack<float, N> w = filters[down * K + across];
#pragma unroll
        for (int k = 0; k < N; ++k) sums[a][b].values[k] += x.values[k] * w.values[k];
      }
    }
  }

  __device__ void Store(uint32_t item, uint32_t down, uint32_t across, uint32_t pack,
                        const WidePack<T, N> (&sums)[kRows][kColumns]) const {
    const int top = rows_.Result(down), left = columns_.Result(across);
#pragma unroll
    for (int a = 0; a < kRows; ++a) {
#pragma unroll
      for (int b = 0; b < kColumns; ++b) {
        const int h = top + a, w = left + b;
        if (static_cast<unsigned>(h) >= static_cast<unsigned>(result_.height) ||
            static_cast<unsigned>(w) >= static_cast<unsigned>(result_.width)) {
          continue;
        }
        const uint32_t at = result_.At(result_.Row(item, h), w, pack);
        StorePack(to_, at, epilogue_.ApplyPack(at, sums[a][b]));
      }
    }
  }

  PackImage source_, result_;
  Axis<kRows> rows_;
  Axis<kColumns> columns_;
  Divisor taps_;
  const T *from_, *w_;
  Numbers bias_;
  Epilogue epilogue_;
  T* to_;
};

// For any filter, stride and dilation; a cell is one result.
template <typename T, int N, ConvPass kPass, typename Epilogue>
class DepthwiseResults {
 public:
  static constexpr int kFilterPacks =
      DepthwiseFilters<N>::kMostBytes / static_cast<int>(sizeof(Pack<float, N>));

  DepthwiseResults(const ops::ConvGeometry& geometry,
                   const DepthwiseOperands<T, Epilogue>& operands)
      : source_(operands.source, N),
        result_(operands.result, N),
        rows_(geometry, 0, source_.height, result_.height),
        columns_(geometry, 1, source_.width, result_.width),
        taps_(geometry.kernel[0] * geometry.kernel[1]),
        from_(operands.source.template as<const T>()),
        w_(operands.w.template as<const T>()),
        bias_(operands.bias),
        epilogue_(operands.epilogue),
        to_(operands.result.template as<T>()) {}

  int64_t cells(int64_t items) const { return items * result_.height * result_.width; }
  int packs() const { return result_.packs; }

  __device__ void Load(const DepthwiseFilters<N>& filters, const DepthwiseTiles& tiles) const {
    filters.Load(w_, bias_, taps_, tiles);
  }

  __device__ void operator()(uint32_t cell, uint32_t pack,
                             const DepthwiseFilters<N>& filters) const {
    uint32_t w, h;
    const uint32_t item = rows_.results.Divide(columns_.results.Divide(cell, &w), &h);
    const Pack<float, N> bias = filters[static_cast<int>(taps_.value)];
    WidePack<T, N> sums;
#pragma unroll
    for (int k = 0; k < N; ++k) sums.values[k] = bias.values[k];
    for (int down = 0; down < rows_.taps; ++down) {
      const int row = rows_.Source(static_cast<int>(h), down);
      if (row < 0) continue;
      const uint32_t image_row = source_.Row(item, row);
      for (int across = 0; across < columns_.taps; ++across) {
        const int column = columns_.Source(static_cast<int>(w), across);
        if (column < 0) continue;
        const Pack<float, N> factors = filters[down * columns_.taps + across];
        const WidePack<T, N> x =
            Widen(Pack<T, N>(PackAt<T, N>(from_, source_.At(image_row, column, pack))));
#pragma unroll
        for (int k = 0; k < N; ++k) sums.values[k] += x.values[k] * factors.values[k];
      }
    }
    const uint32_t at =
        result_.At(result_.Row(item, static_cast<int>(h)), static_cast<int>(w), pack);
    StorePack(to_, at, epilogue_.ApplyPack(at, sums));
  }

 private:
  struct Axis {
    Divisor results, by_stride;
    int taps, stride, pad, dilation, sources;

    Axis(const ops::ConvGeometry& geometry, int axis, int sources, int result_count)
        : results(result_count),
          by_stride(geometry.stride[axis]),
          taps(static_cast<int>(geometry.kernel[axis])),
          stride(static_cast<int>(geometry.stride[axis])),
          pad(static_cast<int>(geometry.pad[axis])),
          dilation(static_cast<int>(geometry.dilation[axis])),
          sources(sources) {}

    // Position of the source that a tap multiplies for a result; -1 if there is none.
    __device__ int Source(int result, int tap) const {
      if constexpr (kPass == ConvPass::kForward) {
        const int at = result * stride - pad + tap * dilation;
        return at < sources ? std::max(at, -1) : -1;
      }
      const int begin = result + pad - tap * dilation;
      if (begin < 0) return -1;
      uint32_t between;
      const int at = static_cast<int>(by_stride.Divide(static_cast<uint32_t>(begin), &between));
      return between == 0 && at < sources ? at : -1;
    }
  };

  PackImage source_, result_;
  Axis rows_, columns_;
  Divisor taps_;
  const T *from_, *w_;
  Numbers bias_;
  Epilogue epilogue_;
  T* to_;
};

template <int N, typename Body>
__global__ void __launch_bounds__(kBlockThreads, 2)
    DepthwiseKernel(Body body, DepthwiseTiles tiles) {
  __shared__ typename DepthwiseFilters<N>::Channels shared[Body::kFilterPacks];
  const DepthwiseFilters<N> filters(shared, tiles);
  body.Load(filters, tiles);
  __syncthreads();
  for (uint32_t cell = tiles.first_cell(); cell < tiles.cells; cell += tiles.stride())
    body(cell, tiles.pack(), filters);
}

template <int N, typename Body>
void RunDepthwise(const KernelContext& ctx, const Body& body, int64_t items, int64_t taps) {
  // Some waves of blocks; a block that has several rounds of cells loads its filters once.
  constexpr int64_t kBlocks = 2112;
  const DepthwiseTiles tiles(body.packs(), body.cells(items), kBlocks,
                             DepthwiseFilters<N>::MostColumns(taps));
  Launch(ctx, DepthwiseKernel<N, Body>, tiles.blocks(), kBlockThreads, body, tiles);
}

template <typename T, ConvPass kPass, typename Epilogue>
void RunDepthwise(const KernelContext& ctx, const ops::ConvGeometry& g, bool is_aligned,
                  const DepthwiseOperands<T, Epilogue>& operands) {
  constexpr int N = kDepthwisePack;
  const int64_t items = operands.result.shape[0], taps = g.kernel[0] * g.kernel[1];
  if (!is_aligned || !operands.template AreAligned<N>()) {
    RunDepthwise<1>(ctx, DepthwiseResults<T, 1, kPass, Epilogue>(g, operands), items, taps);
  } else if (KnownFilter(g) == 0) {
    RunDepthwise<N>(ctx, DepthwiseResults<T, N, kPass, Epilogue>(g, operands), items, taps);
  } else {
    VisitKnownFilter(
        g, [&]<int K, int S>(std::integral_constant<int, K>, std::integral_constant<int, S>) {
          RunDepthwise<N>(ctx, DepthwiseCells<T, K, S, kPass, Epilogue>(g, operands), items, taps);
        });
  }
}

std::string UnfitFilters(const ops::ConvGeometry& g, const TensorDesc& image, const TensorDesc& w) {
  if (w.dtype != image.dtype) return "the image and w are of two types";
  if (DepthwiseFilters<kDepthwisePack>::MostColumns(g.kernel[0] * g.kernel[1]) < 1)
    return "too many taps";
  return "";
}

KernelOrRefusal MakeConvDepthwise(const ops::Conv& op, const KernelRequest& request) {
  using ops::Conv;
  const TensorDesc& x = request.inputs[Conv::kX];
  if (std::string why = UnfitForDepthwise(op.geometry, x, request.outputs[0]); !why.empty())
    return Refusal{why};
  if (std::string why = UnfitFilters(op.geometry, x, request.inputs[Conv::kW]); !why.empty())
    return Refusal{why};
  return Kernel{"", [op](const KernelContext& ctx) {
                  VisitDepthwiseType(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
                    RunDepthwise<T, ConvPass::kForward>(
                        ctx, op.geometry, true,
                        DepthwiseOperands<T, DepthwiseRelu<T>>{
                            ctx.input(Conv::kX), ctx.output(0), ctx.input(Conv::kW),
                            InputNumbers(ctx, Conv::kBias), DepthwiseRelu<T>(op.epilogue)});
                  });
                }};
}

KernelOrRefusal MakeGradDataDepthwise(const ops::ConvGradData& op, const KernelRequest& request) {
  using Gradient = ops::ConvGradData;
  const TensorDesc &dx = request.outputs[0], &dy = request.inputs[Gradient::kDy];
  if (std::string why = UnfitForDepthwise(op.geometry, dx, dy); !why.empty()) return Refusal{why};
  if (std::string why = UnfitFilters(op.geometry, dx, request.inputs[Gradient::kW]); !why.empty())
    return Refusal{why};
  return Kernel{
      "", [op](const KernelContext& ctx) {
        VisitDepthwiseType(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
          const GradientEntries<T> entries(ctx, op.epilogue);
          RunDepthwise<T, ConvPass::kGradient>(
              ctx, op.geometry, entries.template IsAligned<kDepthwisePack>(),
              DepthwiseOperands<T, GradientEntries<T>>{
                  ctx.input(Gradient::kDy), ctx.output(0), ctx.input(Gradient::kW), {}, entries});
        });
      }};
}

CAFFE_REGISTER_KERNEL_FACTORY(
    DeviceKind::kCuda, ops::Conv, "conv-depthwise", KernelRank::kGood, MakeConvDepthwise,
    {.signatures = DepthwiseSignatures(), .fuses = IsReluAlone, .is_for = HasGroups<ops::Conv>});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ConvGradData, "conv-grad-data-depthwise",
                              KernelRank::kGood, MakeGradDataDepthwise,
                              {.signatures = DepthwiseSignatures(),
                               .fuses = IsGradientEpilogue,
                               .is_for = HasGroups<ops::ConvGradData>});

}  // namespace
}  // namespace caffe::cuda
