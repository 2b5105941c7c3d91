// Products of many pairs of matrices of 8-bit numbers, by tiles in shared memory.

#include "caffe/cuda/int8.cuh"
#include "caffe/cuda/launch.cuh"
#include "caffe/ops/gemm.hpp"

namespace caffe::cuda {
namespace {

// Rows and columns of a tile, words of 4 numbers of its depth, and results of a thread along both.
constexpr int kEdge = 64, kWords = 8, kEach = 4;
constexpr int kLanes = kEdge / kEach;
static_assert(kLanes * kLanes == kBlockThreads);
constexpr int kMostAxes = 8;

// sum + the products of the 4 signed numbers in two words.
__device__ inline int32_t AddProducts(uint32_t a, uint32_t b, int32_t sum) {
#ifdef __CUDA_ARCH__
  return __dp4a(static_cast<int32_t>(a), static_cast<int32_t>(b), sum);
#else
  for (int shift = 0; shift < 32; shift += 8)
    sum += static_cast<int8_t>(a >> shift) * static_cast<int8_t>(b >> shift);
  return sum;
#endif
}

// Vectors of `count` numbers, which follow each other or lie side by side.
struct NumberLines {
  const int8_t* data;
  int64_t lines, count;
  bool are_consecutive;

  // Numbers 4 word to 4 word + 3 of a line, with zeros beyond the matrix.
  __device__ uint32_t Word(int64_t line, int64_t word) const {
    const int64_t first = 4 * word, left = count - first;
    if (line >= lines || left <= 0) return 0;
    const int64_t step = are_consecutive ? 1 : lines;
    const int8_t* from = data + (are_consecutive ? line * count + first : first * lines + line);
    uint32_t numbers = 0;
    for (int i = 0; i < 4 && i < left; ++i)
      numbers |= static_cast<uint32_t>(static_cast<uint8_t>(from[i * step])) << (8 * i);
    return numbers;
  }
  // Loads the tile at a line and a word. Lanes follow contiguous memory.
  __device__ void Load(int64_t line, int64_t word, uint32_t (&tile)[kWords][kEdge + 1]) const {
    for (int i = threadIdx.x; i < kWords * kEdge; i += kBlockThreads) {
      const int l = are_consecutive ? i / kWords : i % kEdge;
      const int w = are_consecutive ? i % kWords : i / kEdge;
      tile[w][l] = Word(line + l, word + w);
    }
  }
};

// The matrices of a batch, and the tiles of their products.
struct PairTiles {
  int axes = 0;
  int64_t extents[kMostAxes], a_steps[kMostAxes], b_steps[kMostAxes], c_steps[kMostAxes];
  int64_t rows, columns, inner, row_tiles, column_tiles;
  bool transpose_a, transpose_b;

  explicit PairTiles(const ops::BatchedGemm& op)
      : axes(static_cast<int>(op.batch.size())),
        rows(op.rows),
        columns(op.columns),
        inner(op.inner),
        row_tiles((op.rows + kEdge - 1) / kEdge),
        column_tiles((op.columns + kEdge - 1) / kEdge),
        transpose_a(op.transpose_a),
        transpose_b(op.transpose_b) {
    for (size_t k = 0; k < op.batch.size(); ++k) {
      extents[k] = op.batch[k];
      a_steps[k] = op.a_steps[k], b_steps[k] = op.b_steps[k], c_steps[k] = op.c_steps[k];
    }
  }
  // The indices of the matrices of a pair.
  __device__ void Find(int64_t pair, int64_t* a, int64_t* b, int64_t* c) const {
    *a = *b = *c = 0;
    for (int k = axes - 1; k >= 0; --k) {
      int64_t at;
      pair = Divide(pair, extents[k], &at);
      *a += at * a_steps[k], *b += at * b_steps[k], *c += at * c_steps[k];
    }
  }
};

template <typename C>
__global__ void __launch_bounds__(kBlockThreads)
    PairsKernel(PairTiles pairs, const int8_t* a, const int8_t* b, float factor, int64_t tiles,
                C* c) {
  __shared__ uint32_t a_tile[kWords][kEdge + 1], b_tile[kWords][kEdge + 1];
  const int lane = threadIdx.x % kLanes, line = threadIdx.x / kLanes;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    int64_t column_tile, row_tile, of_a, of_b, of_c;
    const int64_t pair =
        Divide(Divide(tile, pairs.column_tiles, &column_tile), pairs.row_tiles, &row_tile);
    pairs.Find(pair, &of_a, &of_b, &of_c);
    const NumberLines rows{a + of_a * pairs.rows * pairs.inner, pairs.rows, pairs.inner,
                           !pairs.transpose_a};
    const NumberLines columns{b + of_b * pairs.inner * pairs.columns, pairs.columns, pairs.inner,
                              pairs.transpose_b};
    int32_t sums[kEach][kEach] = {};
    for (int64_t word = 0; 4 * word < pairs.inner; word += kWords) {
      rows.Load(row_tile * kEdge, word, a_tile);
      columns.Load(column_tile * kEdge, word, b_tile);
      __syncthreads();
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
#pragma unroll
          for (int k = 0; k < kEach; ++k) {
            sums[i][k] =
                AddProducts(a_tile[w][line + i * kLanes], b_tile[w][lane + k * kLanes], sums[i][k]);
          }
        }
      }
      __syncthreads();
    }
    for (int i = 0; i < kEach; ++i) {
      for (int k = 0; k < kEach; ++k) {
        const int64_t row = row_tile * kEdge + line + i * kLanes;
        const int64_t column = column_tile * kEdge + lane + k * kLanes;
        if (row >= pairs.rows || column >= pairs.columns) continue;
        c[(of_c * pairs.rows + row) * pairs.columns + column] =
            ops::ToNumber<C>(static_cast<float>(sums[i][k]) * factor);
      }
    }
  }
}

void MultiplyPairs(const ops::BatchedGemm& op, const KernelContext& ctx) {
  const TensorView &a = ctx.input(op.kA), &b = ctx.input(op.kB), &c = ctx.output(0);
  const PairTiles pairs(op);
  const int64_t tiles = op.items() * pairs.row_tiles * pairs.column_tiles;
  VisitNumber(c.dtype, [&]<typename C>(TypeTag<C>) {
    Launch(ctx, PairsKernel<C>, std::min(tiles, kMaxBlocks), kBlockThreads, pairs,
           a.as<const int8_t>(), b.as<const int8_t>(),
           ops::ChannelFactor(a.scale, b.scale, ops::ScaleOf(c)), tiles, c.as<C>());
  });
}

KernelOrRefusal MakePairs(const ops::BatchedGemm& op, const KernelRequest& request) {
  for (const OperandDesc& factor : request.inputs) {
    if (factor.dtype != DType::kInt8)
      return Refusal{StrCat("only signed 8-bit data, not ", Name(factor.dtype))};
  }
  if (op.batch.size() > kMostAxes) return Refusal{StrCat("at most ", kMostAxes, " axes")};
  return Kernel{.run = [op](const KernelContext& ctx) { MultiplyPairs(op, ctx); }};
}

KernelTraits PairsTraits() {
  KernelTraits traits = ops::Int8PairsTraits();
  traits.takes_unsigned = false;
  return traits;
}

// Not measured on a chip yet, whose tensor cores multiply TF32 faster than its other cores multiply
// 8-bit numbers, so no plan chooses 8 bits because of this kernel.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::BatchedGemm, "batched-gemm-int8-direct",
                              KernelRank::kSlow, MakePairs, PairsTraits());

}  // namespace
}  // namespace caffe::cuda
