#include "caffe/ops/random.hpp"

#include <algorithm>

#include "caffe/core/philox.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

constexpr int64_t kInBlock = 4, kBlocksAtOnce = 16, kAtOnce = kInBlock * kBlocksAtOnce;

// The numbers of kBlocksAtOnce blocks, in a loop that compilers vectorize.
CAFFE_CPU_CLONES void FillBits(const RandomStream& stream, uint64_t first, uint64_t pass,
                               uint32_t* bits) {
  const RandomStream random = stream;  // a copy, which stays in registers
  uint32_t parts[kInBlock][kBlocksAtOnce];
  for (int64_t b = 0; b < kBlocksAtOnce; ++b) {
    const auto block = random.Block(first + static_cast<uint64_t>(b), pass);
    for (int64_t k = 0; k < kInBlock; ++k) parts[k][b] = block[static_cast<size_t>(k)];
  }
  for (int64_t b = 0; b < kBlocksAtOnce; ++b) {
    for (int64_t k = 0; k < kInBlock; ++k) bits[b * kInBlock + k] = parts[k][b];
  }
}

template <typename T>
CAFFE_CPU_CLONES void DropRow(const T* x, const uint32_t* bits, uint32_t threshold, Accum<T> scale,
                              int64_t count, T* y) {
  using A = Accum<T>;
  for (int64_t i = 0; i < count; ++i)
    y[i] = T(bits[i] >= threshold ? static_cast<A>(x[i]) * scale : A(0));
}

void Dropout(const ops::Dropout& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const RandomStream random(ctx.random.seed, op.stream);
  const uint64_t pass = ctx.random.pass;
  const uint32_t threshold = static_cast<uint32_t>(op.ratio * 4294967296.0);
  // Maps a row-major index to an offset in memory.
  const bool is_plain = y.layout == Layout::kPlain;
  const int64_t channels = is_plain ? 1 : y.shape[1], pixels = is_plain ? 1 : y.shape.count(2);
  const auto place = [=](int64_t i) {
    if (is_plain) return i;
    const int64_t n = i / (channels * pixels), c = i / pixels % channels, p = i % pixels;
    return (n * pixels + p) * channels + c;
  };
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    const auto scale = static_cast<Accum<T>>(op.factor());
    const T* const from = x.as<const T>();
    T* const to = y.as<T>();
    const int64_t pieces = (y.count() + kAtOnce - 1) / kAtOnce;
    ParallelFor(pieces, kPointwiseGrain / kAtOnce, [&](int64_t begin, int64_t end) {
      uint32_t bits[kAtOnce];
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t first = piece * kAtOnce, count = std::min(kAtOnce, y.count() - first);
        FillBits(random, static_cast<uint64_t>(piece * kBlocksAtOnce), pass, bits);
        if (is_plain) {
          DropRow(from + first, bits, threshold, scale, count, to + first);
          continue;
        }
        for (int64_t i = 0; i < count; ++i) {
          const int64_t at = place(first + i);
          DropRow(from + at, bits + i, threshold, scale, 1, to + at);
        }
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Dropout, Dropout);

}  // namespace
}  // namespace caffe::cpu
