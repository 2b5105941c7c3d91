// Gradients of depthwise filters, of channels-last images, with that of the bias in the same pass.
// Each thread sums all taps of its channels along pieces of rows, so that a gradient and a pixel
// are read once for K taps. Blocks write partial sums, and a second launch adds them: the order of
// all sums depends only on the shapes.
#include "caffe/cuda/kernels/depthwise_packs.cuh"
#include "caffe/cuda/reduce.cuh"

namespace caffe::cuda {
namespace {

using ops::ConvGradWeights;

// Results of one row, which a thread takes one after the other.
struct RowPieces {
  Divisor pieces, rows;
  int length = 1;

  RowPieces(const PackImage& dy, int64_t items) : rows(dy.height) {
    // Enough threads for a large chip, but pieces that are much longer than the window.
    constexpr int64_t kThreads = 1 << 17, kLeastLength = 14;
    const int64_t threads = std::max<int64_t>(items * dy.height * dy.packs, 1);
    const int64_t most = std::max<int64_t>(dy.width / kLeastLength, 1);
    const int64_t count = std::clamp<int64_t>((kThreads + threads - 1) / threads, 1, most);
    length = static_cast<int>((dy.width + count - 1) / count);
    pieces = Divisor((dy.width + length - 1) / std::max(length, 1));
  }
};

// Sums for filters of K x K with a stride of S and no dilation, or with K = 1 for one tap of any
// filter.
template <typename T, int kPack, int K, int S>
class DepthwiseFilterSums {
 public:
  static constexpr int N = kPack, kTaps = K * K;
  // Blocks of a multiprocessor, whose registers hold the sums.
  static constexpr int kResident = K > 3 ? 1 : 2;
  struct Sums {
    WidePack<T, N> values[kTaps + 1] = {};  // the last is that of the bias
  };

  DepthwiseFilterSums(const ops::ConvGeometry& geometry, const TensorView& x, const TensorView& dy)
      : x_image_(x, N),
        dy_image_(dy, N),
        pieces_(dy_image_, dy.shape[0]),
        across_(geometry.kernel[1]),
        rows_(geometry, 0),
        columns_(geometry, 1),
        x_(x.as<const T>()),
        dy_(dy.as<const T>()) {}

  int64_t cells(int64_t items) const { return items * pieces_.rows.value * pieces_.pieces.value; }
  int packs() const { return dy_image_.packs; }

  __device__ void Add(uint32_t cell, uint32_t pack, uint32_t tap, Sums& sums) const {
    uint32_t piece, h, tap_column = 0;
    const uint32_t item = pieces_.rows.Divide(pieces_.pieces.Divide(cell, &piece), &h);
    const int tap_row = K == 1 ? static_cast<int>(across_.Divide(tap, &tap_column)) : 0;
    const int top = static_cast<int>(h) * rows_.stride - rows_.pad + tap_row * rows_.dilation;
    const int left = static_cast<int>(tap_column) * columns_.dilation - columns_.pad;
    MaskedLine rows[K];
    uint32_t x_rows[K];
#pragma unroll
    for (int r = 0; r < K; ++r) {
      rows[r] = MaskedLine(top + r, x_image_.height);
      x_rows[r] = x_image_.Row(item, rows[r].at);
    }
    const uint32_t dy_row = dy_image_.Row(item, static_cast<int>(h));
    const int begin = static_cast<int>(piece) * pieces_.length;
    const int end = std::min(begin + pieces_.length, dy_image_.width);
    WidePack<T, N> window[kWindow] = {};  // gradients at this column and before
    for (int w = begin; w < end + kWindow - 1; w += kAhead) {
      Column loaded[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const MaskedLine result(w + u, end);
        loaded[u].dy = {PackAt<T, N>(dy_, dy_image_.At(dy_row, result.at, pack)), result.mask};
#pragma unroll
        for (int t = 0; t < kSteps; ++t) {
          const MaskedLine column((w + u) * columns_.stride + left + t, x_image_.width);
#pragma unroll
          for (int r = 0; r < K; ++r) {
            loaded[u].x[t][r] = {PackAt<T, N>(x_, x_image_.At(x_rows[r], column.at, pack)),
                                 rows[r].mask & column.mask};
          }
        }
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) Add(loaded[u], window, sums);
    }
  }

 private:
  static constexpr int kSteps = K == 1 ? 1 : S;  // columns of x for one of dy
  static constexpr int kWindow = (K + kSteps - 1) / kSteps;
  static constexpr int kAhead = K > 3 ? 1 : 2;  // columns in flight

  struct Axis {
    int stride, pad, dilation;

    Axis(const ops::ConvGeometry& geometry, int axis)
        : stride(static_cast<int>(geometry.stride[axis])),
          pad(static_cast<int>(geometry.pad[axis])),
          dilation(static_cast<int>(geometry.dilation[axis])) {}
  };

  // A column of dy, and the columns of x that no column before has read.
  struct Column {
    struct Loaded {
      Pack<T, N> pack;
      uint32_t mask;
      __device__ WidePack<T, N> Get() const { return Widen(Masked(pack, mask)); }
    };
    Loaded dy, x[kSteps][K];
  };

  static __device__ void Add(const Column& column, WidePack<T, N> (&window)[kWindow], Sums& sums) {
#pragma unroll
    for (int d = kWindow - 1; d > 0; --d) window[d] = window[d - 1];
    window[0] = column.dy.Get();
#pragma unroll
    for (int k = 0; k < N; ++k) sums.values[kTaps].values[k] += window[0].values[k];
#pragma unroll
    for (int t = 0; t < kSteps; ++t) {
#pragma unroll
      for (int r = 0; r < K; ++r) {
        const WidePack<T, N> x = column.x[t][r].Get();
#pragma unroll
        for (int d = 0; d < kWindow; ++d) {
          const int s = t + kSteps * d;
          if (s >= K) continue;
#pragma unroll
          for (int k = 0; k < N; ++k)
            sums.values[r * K + s].values[k] += x.values[k] * window[d].values[k];
        }
      }
    }
  }

  PackImage x_image_, dy_image_;
  RowPieces pieces_;
  Divisor across_;  // taps in a row
  Axis rows_, columns_;
  const T *x_, *dy_;
};

// Sums over the cells of a block. A part of the partial sums has a row of channels for each tap,
// and then one for the bias. With K = 1 there are as many copies of the grid as taps.
template <typename Body>
__global__ void __launch_bounds__(kBlockThreads, Body::kResident)
    DepthwiseFilterKernel(Body body, DepthwiseTiles tiles, int bias_row,
                          PartialSums<float> partial) {
  constexpr int N = Body::N, kTaps = Body::kTaps, kRowsAtOnce = std::min(kTaps + 1, 10);
  __shared__ float shared[kRowsAtOnce][N][kBlockThreads + 4];
  const uint32_t copy = tiles.copy();
  typename Body::Sums sums;
  for (uint32_t cell = tiles.first_cell(); cell < tiles.cells; cell += tiles.stride())
    body.Add(cell, tiles.pack(), copy, sums);
  const int channels = tiles.packs * N, tile_channels = tiles.columns * N;
  const int first_channel = static_cast<int>(tiles.tile()) * tile_channels;
  const int count = std::min(tile_channels, channels - first_channel);
#pragma unroll
  for (int first = 0; first <= kTaps; first += kRowsAtOnce) {
    const int rows = std::min(kRowsAtOnce, kTaps + 1 - first);
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if (first + i <= kTaps) shared[i][k][threadIdx.x] = sums.values[first + i].values[k];
      }
    }
    __syncthreads();
    for (int j = static_cast<int>(threadIdx.x); j < rows * count; j += kBlockThreads) {
      const int i = j / count, channel = j % count;
      const float* const of_threads = &shared[i][channel % N][channel / N];
      float sum = 0;
      for (int cell = 0; cell < tiles.block_cells; ++cell) sum += of_threads[cell * tiles.columns];
      const int row = first + i == kTaps ? bias_row : static_cast<int>(copy) * kTaps + first + i;
      if (row < bias_row || copy == 0)
        partial.At(0, tiles.part(), int64_t{row} * channels + first_channel + channel) = sum;
    }
    __syncthreads();
  }
}

// Stores sums, ordered by taps, in the order of the filters; the last row is that of the biases.
struct StoreFilterSum {
  int64_t channels, taps;
  Gradient dw, db;

  __device__ void operator()(int64_t i, const Sums<1, float>& sums) const {
    int64_t channel;
    const int64_t tap = Divide(i, channels, &channel);
    if (tap == taps) {
      db.Store(channel, sums.values[0]);
    } else {
      dw.Store(channel * taps + tap, sums.values[0]);
    }
  }
};

// Two blocks for each multiprocessor of an H200.
constexpr int64_t kFilterBlocks = 264;

// `taps`: of the whole filter.
template <typename Body>
void SumFilters(const KernelContext& ctx, const Body& body, int64_t taps) {
  const TensorView& dy = ctx.input(ConvGradWeights::kDy);
  const int64_t channels = dy.shape[1], sums = (taps + 1) * channels;
  const DepthwiseTiles tiles(body.packs(), body.cells(dy.shape[0]), kFilterBlocks);
  const PartialSums<float> partial{static_cast<float*>(ctx.workspace), tiles.parts, sums};
  Launch(ctx, DepthwiseFilterKernel<Body>, tiles.blocks() * (taps / Body::kTaps), kBlockThreads,
         body, tiles, static_cast<int>(taps), partial);
  const Covered parts(tiles.parts, sums, 1);
  LaunchSums<1, float>(ctx, parts, Parts(parts), PartialSums<float>{nullptr, 1, sums},
                       AddPartialSums<1, float>{partial},
                       StoreFilterSum{channels, taps, OutputGradient(ctx, ConvGradWeights::kDw),
                                      OutputGradient(ctx, ConvGradWeights::kDbias)});
}

// Bytes of partial sums, for any number of cells.
size_t FilterSumsWorkspace(int64_t channels, int64_t taps) {
  const int64_t parts = DepthwiseTiles::MostParts(channels / kDepthwisePack, kFilterBlocks);
  return static_cast<size_t>(parts * (taps + 1) * channels) * sizeof(float);
}

template <typename T>
void GradWeightsDepthwise(const ConvGradWeights& op, const KernelContext& ctx) {
  const ops::ConvGeometry& g = op.geometry;
  const TensorView &x = ctx.input(ConvGradWeights::kX), &dy = ctx.input(ConvGradWeights::kDy);
  const int64_t taps = g.kernel[0] * g.kernel[1];
  constexpr int N = kDepthwisePack;
  if (!IsPackAligned<T, N>(x.as<T>()) || !IsPackAligned<T, N>(dy.as<T>())) {
    SumFilters(ctx, DepthwiseFilterSums<T, 1, 1, 1>(g, x, dy), taps);
  } else if (KnownFilter(g) == 0) {
    SumFilters(ctx, DepthwiseFilterSums<T, N, 1, 1>(g, x, dy), taps);
  } else {
    VisitKnownFilter(
        g, [&]<int K, int S>(std::integral_constant<int, K>, std::integral_constant<int, S>) {
          SumFilters(ctx, DepthwiseFilterSums<T, N, K, S>(g, x, dy), taps);
        });
  }
}

KernelOrRefusal MakeGradWeightsDepthwise(const ConvGradWeights& op, const KernelRequest& request) {
  const OperandDesc &x = request.inputs[ConvGradWeights::kX],
                    &dy = request.inputs[ConvGradWeights::kDy];
  if (!request.outputs[ConvGradWeights::kDw].present)
    return Refusal{"only the bias's gradient is wanted"};
  if (std::string why = UnfitForDepthwise(op.geometry, x, dy); !why.empty()) return Refusal{why};
  return Kernel{"",
                [op](const KernelContext& ctx) {
                  VisitDepthwiseType(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
                    GradWeightsDepthwise<T>(op, ctx);
                  });
                },
                FilterSumsWorkspace(dy.shape[1], op.geometry.kernel[0] * op.geometry.kernel[1])};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ConvGradWeights, "conv-grad-weights-depthwise",
                              KernelRank::kGood, MakeGradWeightsDepthwise,
                              {.signatures = DepthwiseSignatures(),
                               .is_for = HasGroups<ConvGradWeights>});

}  // namespace
}  // namespace caffe::cuda
