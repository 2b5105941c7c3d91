#include "caffe/ops/mixup.hpp"

#include "caffe/cpu/kernels/labels.hpp"
#include "caffe/cpu/parallel.hpp"

namespace caffe::cpu {
namespace {

ops::Mix MixOf(const KernelContext& ctx, int input) {
  if (!ctx.has_input(input)) return {};
  return ops::Mix::Read([&](int i) { return ElementOf(ctx.input(input), i); });
}

void DrawMix(const ops::DrawMix& op, const KernelContext& ctx) {
  const RandomStream random(ctx.random.seed, op.stream);
  op.Draw(random, ctx.random.pass).Write([&](int i, double value) {
    SetElement(ctx.output(0), i, value);
  });
}

// Blends an item and its partner.
template <typename T>
CAFFE_CPU_CLONES void Blend(Accum<T> share, const T* x, const T* partner, int64_t count, T* y) {
  const Accum<T> rest = 1 - share;
  for (int64_t i = 0; i < count; ++i) {
    y[i] = T(share * static_cast<Accum<T>>(x[i]) + rest * static_cast<Accum<T>>(partner[i]));
  }
}

// An image as rows of `width` groups of `depth` numbers.
struct CutRows {
  int64_t planes, height, width, depth;

  CutRows(const Shape& shape, Layout layout)
      : planes(layout == Layout::kPlain ? shape[1] : 1),
        height(shape[2]),
        width(shape[3]),
        depth(layout == Layout::kPlain ? 1 : shape[1]) {}
};

// Copies the rectangle of the partner over a copy of the item.
template <typename T>
void CutIn(const ops::Mix& mix, const CutRows& rows, const T* partner, T* y) {
  const int64_t count = (mix.right - mix.left) * rows.depth;
  for (int64_t plane = 0; plane < rows.planes; ++plane) {
    for (int64_t row = mix.top; row < mix.bottom; ++row) {
      const int64_t at = ((plane * rows.height + row) * rows.width + mix.left) * rows.depth;
      std::copy_n(partner + at, count, y + at);
    }
  }
}

void MixItems(const ops::MixItems&, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const ops::Mix mix = MixOf(ctx, 1);
  const int64_t items = y.shape[0], count = y.shape.count(1);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ParallelFor(items, std::max<int64_t>(1, kPointwiseGrain / count),
                [&](int64_t begin, int64_t end) {
                  for (int64_t item = begin; item < end; ++item) {
                    const T* const own = x.as<const T>() + item * count;
                    const T* const partner = x.as<const T>() + mix.Partner(item, items) * count;
                    T* const out = y.as<T>() + item * count;
                    if (mix.is_cut || mix.share == 1) {
                      std::copy_n(own, count, out);
                      if (mix.is_cut) CutIn(mix, CutRows(y.shape, y.layout), partner, out);
                    } else {
                      Blend<T>(static_cast<Accum<T>>(mix.share), own, partner, count, out);
                    }
                  }
                });
  });
}

void MixLabels(const ops::MixLabels& op, const KernelContext& ctx) {
  const TensorView &labels = ctx.input(0), &y = ctx.output(0);
  const ops::Mix mix = MixOf(ctx, 1);
  const int64_t items = labels.count();
  for (int64_t i = 0; i < items; ++i) RequireLabel(LabelAt(labels, i), op.classes, i);
  for (int64_t i = 0; i < items; ++i) {
    const int64_t own = LabelAt(labels, i), partner = LabelAt(labels, mix.Partner(i, items));
    for (int64_t c = 0; c < op.classes; ++c) {
      SetElement(y, i * op.classes + c,
                 (c == own ? mix.share : 0) + (c == partner ? 1 - mix.share : 0));
    }
  }
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::DrawMix, DrawMix);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::MixItems, MixItems);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::MixLabels, MixLabels);

}  // namespace
}  // namespace caffe::cpu
