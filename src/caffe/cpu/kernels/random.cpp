#include "caffe/ops/random.hpp"

#include "caffe/core/philox.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

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
    using A = Accum<T>;
    const A scale = static_cast<A>(op.factor());
    const int64_t blocks = (y.count() + 3) / 4;
    ParallelFor(blocks, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const auto bits = random.Block(block, pass);
        for (int64_t k = 0; k < 4 && block * 4 + k < y.count(); ++k) {
          const int64_t at = place(block * 4 + k);
          const A value = static_cast<A>(x.as<const T>()[at]);
          y.as<T>()[at] = T(bits[k] >= threshold ? value * scale : A(0));
        }
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Dropout, Dropout);

}  // namespace
}  // namespace caffe::cpu
