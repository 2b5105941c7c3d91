// Convolution by its definition: any number of axes, any type, any layout. Used if cuDNN refuses.
#include "caffe/cuda/entries.hpp"
#include "caffe/cuda/gradient_entries.cuh"
#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/kernels/windows.cuh"
#include "caffe/cuda/numbers.cuh"

namespace caffe::cuda {
namespace {

// Offsets of the elements of x, y and the filter, and which of them are multiplied.
struct ConvIndex {
  Windows windows;
  int64_t items, channels, outputs, group_channels, group_outputs;
  bool in_last, out_last, filter_last;

  ConvIndex(const ops::ConvGeometry& geometry, const TensorDesc& x, const TensorDesc& y,
            Layout filter)
      : windows(geometry, x.shape, y.shape),
        items(x.shape[0]),
        channels(x.shape[1]),
        outputs(y.shape[1]),
        group_channels(channels / geometry.group),
        group_outputs(outputs / geometry.group),
        in_last(x.layout == Layout::kChannelsLast),
        out_last(y.layout == Layout::kChannelsLast),
        filter_last(filter == Layout::kChannelsLast) {}

  __device__ int64_t X(int64_t n, int64_t c, int64_t p) const {
    return in_last ? (n * windows.in_pixels + p) * channels + c
                   : (n * channels + c) * windows.in_pixels + p;
  }
  __device__ int64_t Y(int64_t n, int64_t k, int64_t p) const {
    return out_last ? (n * windows.out_pixels + p) * outputs + k
                    : (n * outputs + k) * windows.out_pixels + p;
  }
  __device__ int64_t W(int64_t k, int64_t c, int64_t tap) const {
    return filter_last ? (k * windows.taps + tap) * group_channels + c
                       : (k * group_channels + c) * windows.taps + tap;
  }
};

struct Place {
  int64_t n, c, p;
};
// Coordinates of element i of a tensor with these channels and pixels.
__device__ inline Place PlaceOf(int64_t i, bool is_last, int64_t channels, int64_t pixels) {
  Place place;
  if (is_last) {
    place.n = Divide(Divide(i, channels, &place.c), pixels, &place.p);
  } else {
    place.n = Divide(Divide(i, pixels, &place.p), channels, &place.c);
  }
  return place;
}

template <typename T>
struct Correlate {
  ConvIndex at;
  const T *x, *w;
  Numbers bias;
  Entries entries;
  T* y;

  __device__ void operator()(int64_t i) const {
    using A = Accum<T>;
    const Place to = PlaceOf(i, at.out_last, at.outputs, at.windows.out_pixels);
    const int64_t first = Divide(to.c, at.group_outputs) * at.group_channels;
    A sum = bias.GetOr(to.c, A(0));
    for (int64_t tap = 0; tap < at.windows.taps; ++tap) {
      const int64_t position = at.windows.Input(to.p, tap);
      if (position < 0) continue;
      for (int64_t c = 0; c < at.group_channels; ++c) {
        sum += Wide(x[at.X(to.n, first + c, position)]) * Wide(w[at.W(to.c, c, tap)]);
      }
    }
    y[i] = T(entries.Apply(sum));
  }
};

void Conv(const ops::Conv& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const ConvIndex at(op.geometry, x, y, ctx.input(ops::Conv::kW).layout);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, y.count(),
            Correlate<T>{at, x.as<const T>(), ctx.input(1).as<const T>(), InputNumbers(ctx, 2),
                         Entries(op.epilogue), y.as<T>()});
  });
}

template <typename T>
struct GatherGradient {
  ConvIndex at;
  const T *dy, *w;
  GradientEntries<T> entries;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const Place to = PlaceOf(i, at.in_last, at.channels, at.windows.in_pixels);
    int64_t c;
    const int64_t first = Divide(to.c, at.group_channels, &c) * at.group_outputs;
    Accum<T> sum = 0;
    for (int64_t tap = 0; tap < at.windows.taps; ++tap) {
      const int64_t p = at.windows.Output(to.p, tap);
      if (p < 0) continue;
      for (int64_t k = first; k < first + at.group_outputs; ++k) {
        sum += Wide(dy[at.Y(to.n, k, p)]) * Wide(w[at.W(k, c, tap)]);
      }
    }
    dx[i] = T(entries.Apply(i, sum));
  }
};

void ConvGradData(const ops::ConvGradData& op, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(0), &dx = ctx.output(0);
  const ConvIndex at(op.geometry, dx, dy, ctx.input(ops::ConvGradData::kW).layout);
  VisitFloat(dx.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, dx.count(),
            GatherGradient<T>{at, dy.as<const T>(), ctx.input(1).as<const T>(),
                              GradientEntries<T>(ctx, op.epilogue), dx.as<T>()});
  });
}

// A group of threads sums one weight's gradient over items and output positions.
template <typename T>
struct SumWeightGradient {
  ConvIndex at;
  const T *x, *dy;
  Gradient dw;

  template <typename Group>
  __device__ void operator()(int64_t i, const Group& group) const {
    int64_t tap, c;
    const int64_t k = Divide(Divide(i, at.windows.taps, &tap), at.group_channels, &c);
    c += Divide(k, at.group_outputs) * at.group_channels;
    Accum<T> sum = 0;
    for (int64_t j = group.rank(); j < at.items * at.windows.out_pixels; j += group.size()) {
      int64_t p;
      const int64_t n = Divide(j, at.windows.out_pixels, &p);
      const int64_t position = at.windows.Input(p, tap);
      if (position >= 0) sum += Wide(dy[at.Y(n, k, p)]) * Wide(x[at.X(n, c, position)]);
    }
    sum = group.Reduce(Sum{}, sum);
    if (group.rank() == 0) dw.Store(i, sum);
  }
};

template <typename T>
struct SumBiasGradient {
  ConvIndex at;
  const T* dy;
  Gradient db;

  template <typename Group>
  __device__ void operator()(int64_t k, const Group& group) const {
    Accum<T> sum = 0;
    for (int64_t j = group.rank(); j < at.items * at.windows.out_pixels; j += group.size()) {
      int64_t p;
      const int64_t n = Divide(j, at.windows.out_pixels, &p);
      sum += Wide(dy[at.Y(n, k, p)]);
    }
    sum = group.Reduce(Sum{}, sum);
    if (group.rank() == 0) db.Store(k, sum);
  }
};

void ConvGradWeights(const ops::ConvGradWeights& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &dy = ctx.input(1);
  const ConvIndex at(op.geometry, x, dy, Layout::kPlain);
  const int64_t length = at.items * at.windows.out_pixels;
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    if (ctx.has_output(0)) {
      ForRows(ctx, ctx.output(0).count(), length, 1,
              SumWeightGradient<T>{at, x.as<const T>(), dy.as<const T>(), OutputGradient(ctx, 0)});
    }
    if (ctx.has_output(1)) {
      ForRows(ctx, at.outputs, length, 1,
              SumBiasGradient<T>{at, dy.as<const T>(), OutputGradient(ctx, 1)});
    }
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Conv, Conv, IsReluAlone);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::ConvGradData, ConvGradData, IsGradientEpilogue);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::ConvGradWeights, ConvGradWeights);

}  // namespace
}  // namespace caffe::cuda
