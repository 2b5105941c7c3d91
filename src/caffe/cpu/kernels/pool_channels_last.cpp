// Pooling of channels-last images; the inner loop over channels is vectorized. Sums are float
// whatever the type of the images.
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "caffe/cpu/kernels/channels_last.hpp"
#include "caffe/cpu/kernels/pixel_sums.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/cpu/processor.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe::cpu {
namespace {

// Number of channels with results in registers while a window is read: as many as a register
// holds, because g++ compares wider vectors element by element. Vector types instead of loops:
// compilers use branches for a loop that keeps the larger of two.
constexpr int64_t kNarrowLanes = 8;  // floats of AVX2
template <typename T>
constexpr int64_t kWideLanes = 64 / sizeof(T);  // AVX-512
template <typename E, int64_t kLanes>
struct VectorOf {
  typedef E type __attribute__((vector_size(kLanes * sizeof(E))));  // NOLINT: `using` takes none
};
template <typename E, int64_t kLanes>
using Vector = typename VectorOf<E, kLanes>::type;

// Calls kRun<kLanes>, compiled for AVX-512 or for what all processors have. `channels`: that it
// processes.
#ifdef CAFFE_HAS_PIXEL_SUMS
template <const auto& kRun, int64_t kLanes, typename... A>
CAFFE_WIDE_VECTORS void RunWide(A... arguments) {
  kRun(std::integral_constant<int64_t, kLanes>{}, arguments...);
}
#endif
template <const auto& kRun, typename... A>
CAFFE_CPU_CLONES void RunNarrow(A... arguments) {
  kRun(std::integral_constant<int64_t, kNarrowLanes>{}, arguments...);
}
template <const auto& kRun, int64_t kLanes, typename... A>
void RunInLanes(int64_t channels, A... arguments) {
#ifdef CAFFE_HAS_PIXEL_SUMS
  static const bool is_wide = HasWideVectors();
  if (is_wide && channels >= kLanes) return RunWide<kRun, kLanes>(arguments...);
#endif
  RunNarrow<kRun>(arguments...);
}

// Keys by which values of T are compared. NaN is above nothing. A maximum begins with the lowest
// finite number, so that -inf is not above it either. Vectors are changed in place, because the way
// functions return them depends on the processor.
template <typename T>
struct Order {
  using Key = float;
  static constexpr Key kLowest = -std::numeric_limits<float>::max();
  template <typename V>
  static void ToKeys(V&) {}
  template <typename V>
  static void ToValues(V&) {}
};
// Sign and magnitude as an integer: a vector holds twice as many of these as floats.
template <typename T>
requires(sizeof(T) == 2) struct Order<T> {
  using Key = int16_t;
  static constexpr int16_t kInfinity = std::is_same_v<T, float16> ? 0x7c00 : 0x7f80;
  static constexpr Key kLowest = -(kInfinity - 1);

  template <typename V>
  [[gnu::always_inline]] static void ToKeys(V& bits) {
    const V magnitude = bits & 0x7fff;
    const V signed_keys = bits < 0 ? -magnitude : magnitude;
    bits = magnitude > kInfinity ? V{} + std::numeric_limits<Key>::min() : signed_keys;
  }
  template <typename V>
  [[gnu::always_inline]] static void ToValues(V& keys) {
    keys = keys < 0 ? -keys | std::numeric_limits<Key>::min() : keys;
  }
};

// Loads or stores elements, at most as many as the vector has.
template <typename E, typename V>
[[gnu::always_inline]] inline void LoadLanes(const E* from, int64_t lanes, V& to) {
  const size_t bytes = static_cast<size_t>(lanes) * sizeof(E);
  std::memcpy(&to, from, bytes == sizeof(V) ? sizeof(V) : bytes);
}
template <typename E, typename V>
[[gnu::always_inline]] inline void StoreLanes(const V& from, int64_t lanes, E* to) {
  const size_t bytes = static_cast<size_t>(lanes) * sizeof(E);
  std::memcpy(static_cast<void*>(to), &from, bytes == sizeof(V) ? sizeof(V) : bytes);
}

// Type of winners' positions; as narrow as the keys if their codes are small.
template <typename T, typename M>
using Place = std::conditional_t<sizeof(T) == 2 && sizeof(M) == 1, int16_t, int32_t>;

// Stands for a mask that is not requested.
struct NoMask {};

// Rows and columns of positions that are read together: the pixels of a window, or the windows that
// cover a pixel. Steps are in elements, from row to row and from position to position. `code` is
// the mask's code of the first position, and code_row and code_step are its increments.
struct Places {
  int64_t channels, rows, columns;
  int64_t row_step, step;
  int code, code_row, code_step;
};

template <int64_t kLanes, typename T, typename M>
[[gnu::always_inline]] inline void MaxOfLanes(const T* x, const Places& pixels, int none,
                                              int64_t lanes, T* y, M* mask) {
  using P = Place<T, M>;
  constexpr bool kWantsMask = !std::is_same_v<M, NoMask>;
  Vector<typename Order<T>::Key, kLanes> best{}, key{};
  best += Order<T>::kLowest;
  Vector<P, kLanes> winners = Vector<P, kLanes>{} + static_cast<P>(none);
  for (int64_t h = 0; h < pixels.rows; ++h) {
    for (int64_t w = 0; w < pixels.columns; ++w) {
      LoadLanes(x + h * pixels.row_step + w * pixels.step, lanes, key);
      Order<T>::ToKeys(key);
      const auto wins = key > best;
      best = wins ? key : best;
      if constexpr (kWantsMask) {
        const P where = static_cast<P>(pixels.code + h * pixels.code_row + w * pixels.code_step);
        winners = __builtin_convertvector(wins, Vector<P, kLanes>) ? Vector<P, kLanes>{} + where
                                                                   : winners;
      }
    }
  }
  Order<T>::ToValues(best);
  StoreLanes(best, lanes, y);
  if constexpr (kWantsMask) {
    const Vector<M, kLanes> places = __builtin_convertvector(winners, Vector<M, kLanes>);
    StoreLanes(places, lanes, mask);
  }
}

// Computes all channels of one window. `none`: the mask's code of an empty window.
constexpr auto kMaxOfWindow = []<typename T, typename M>(auto lanes, const T* x,
                                                         const Places& pixels, int none, T* y,
                                                         M* mask) CAFFE_FORCE_INLINE {
  ForEachLanes<lanes>(pixels.channels, [&](int64_t c, int64_t some) CAFFE_FORCE_INLINE {
    MaxOfLanes<lanes>(x + c, pixels, none, some, y + c, mask == nullptr ? mask : mask + c);
  });
};

template <int64_t kLanes, typename T>
[[gnu::always_inline]] inline void MeanOfLanes(const T* x, const Places& pixels, float share,
                                               int64_t lanes, T* y) {
  float sums[kLanes] = {};
  for (int64_t h = 0; h < pixels.rows; ++h) {
    for (int64_t w = 0; w < pixels.columns; ++w) {
      const T* const pixel = x + h * pixels.row_step + w * pixels.step;
      for (int64_t c = 0; c < lanes; ++c) sums[c] += share * static_cast<float>(pixel[c]);
    }
  }
  for (int64_t c = 0; c < lanes; ++c) y[c] = T(sums[c]);
}
constexpr auto kMeanOfWindow = []<typename T>(auto lanes, const T* x, const Places& pixels,
                                              float share, T* y) CAFFE_FORCE_INLINE {
  ForEachLanes<lanes>(pixels.channels, [&](int64_t c, int64_t some) CAFFE_FORCE_INLINE {
    MeanOfLanes<lanes>(x + c, pixels, share, some, y + c);
  });
};

// sums += dy where the mask has the code of this position.
template <int64_t kLanes, typename T, typename M>
[[gnu::always_inline]] inline void AddWinners(const M* mask, M where, const T* dy, int64_t lanes,
                                              Vector<float, kLanes>& sums) {
  Vector<M, kLanes> winners{};
  LoadLanes(mask, lanes, winners);
  float values[kLanes] = {};
  for (int64_t c = 0; c < lanes; ++c) values[c] = static_cast<float>(dy[c]);
  Vector<float, kLanes> given{};
  LoadLanes(values, kLanes, given);
  const auto wins = __builtin_convertvector(winners == where, Vector<int32_t, kLanes>);
  sums += wins ? given : Vector<float, kLanes>{};
}
template <int64_t kLanes, typename T, typename M>
[[gnu::always_inline]] inline void MaxGradOfLanes(const M* mask, const T* dy, const Places& windows,
                                                  int64_t lanes, T* dx) {
  Vector<float, kLanes> sums{};
  for (int64_t h = 0; h < windows.rows; ++h) {
    for (int64_t w = 0; w < windows.columns; ++w) {
      const int64_t at = h * windows.row_step + w * windows.step;
      const int where =
          static_cast<int>(windows.code + h * windows.code_row + w * windows.code_step);
      AddWinners<kLanes>(mask + at, static_cast<M>(where), dy + at, lanes, sums);
    }
  }
  for (int64_t c = 0; c < lanes; ++c) dx[c] = T(sums[c]);
}
// Computes all channels of one pixel.
constexpr auto kMaxGradOfPixel =
    []<typename T, typename M>(auto lanes, const M* mask, const T* dy, const Places& windows, T* dx)
        CAFFE_FORCE_INLINE {
          ForEachLanes<lanes>(windows.channels, [&](int64_t c, int64_t some) CAFFE_FORCE_INLINE {
            MaxGradOfLanes<lanes>(mask + c, dy + c, windows, some, dx + c);
          });
        };

// `shares`: 1 / size of each window; those of the next row are `outputs` further on.
template <int64_t kLanes, typename T>
[[gnu::always_inline]] inline void MeanGradOfLanes(const T* dy, const Places& windows,
                                                   const float* shares, int64_t outputs,
                                                   int64_t lanes, T* dx) {
  float sums[kLanes] = {};
  for (int64_t h = 0; h < windows.rows; ++h) {
    for (int64_t w = 0; w < windows.columns; ++w) {
      const T* const given = dy + h * windows.row_step + w * windows.step;
      const float share = shares[h * outputs + w];
      for (int64_t c = 0; c < lanes; ++c) sums[c] += share * static_cast<float>(given[c]);
    }
  }
  for (int64_t c = 0; c < lanes; ++c) dx[c] = T(sums[c]);
}
constexpr auto kMeanGradOfPixel = []<typename T>(auto lanes, const T* dy, const Places& windows,
                                                 const float* shares, int64_t outputs,
                                                 T* dx) CAFFE_FORCE_INLINE {
  ForEachLanes<lanes>(windows.channels, [&](int64_t c, int64_t some) CAFFE_FORCE_INLINE {
    MeanGradOfLanes<lanes>(dy + c, windows, shares, outputs, some, dx + c);
  });
};

// The fewest channels of a window that a thread computes.
constexpr int64_t kLeastChannels = 64;

// Calls fn(n, h) for each row of each image, in parallel.
template <typename Fn>
void ForEachRow(const Shape& shape, const Fn& fn) {
  ParallelFor(shape[0] * shape[2], 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) fn(row / shape[2], row % shape[2]);
  });
}

// A copy of the extents: Shape checks the axis in each access, which takes as long as a small
// window.
struct Extents {
  int64_t channels, height, width;
  explicit Extents(const Shape& shape) : channels(shape[1]), height(shape[2]), width(shape[3]) {}
  int64_t Offset(int64_t n, int64_t h, int64_t w) const {
    return ((n * height + h) * width + w) * channels;
  }
};

// Calls fn(TypeTag<M>{}) with the type of a mask.
template <typename Fn>
void VisitMask(DType dtype, const Fn& fn) {
  if (dtype == DType::kUInt8) return fn(TypeTag<uint8_t>{});
  CAFFE_ASSERT(dtype == DType::kFloat, "no mask of ", Name(dtype));
  fn(TypeTag<float>{});
}

// Calls fn(pixels, size before clipping, offset of its first pixel, offset of its result) for each
// window. Where there are fewer rows than threads, they share the channels, too.
template <typename Fn>
void ForEachWindow(const ops::PoolGeometry& geometry, const ops::MaskCode& code,
                   const TensorView& x, const TensorView& y, const Fn& fn) {
  const Extents in(x.shape), out(y.shape);
  const int64_t rows_of_y = y.shape[0] * out.height, threads = omp_get_max_threads();
  const int64_t parts =
      rows_of_y >= threads ? 1 : std::clamp<int64_t>(in.channels / kLeastChannels, 1, threads);
  ParallelFor(rows_of_y * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / parts / out.height, oh = task / parts % out.height;
      const int64_t first = in.channels * (task % parts) / parts;
      const int64_t last = in.channels * (task % parts + 1) / parts;
      const ops::PoolWindow rows = ops::WindowAt(geometry, 0, in.height, oh);
      for (int64_t ow = 0; ow < out.width; ++ow) {
        const ops::PoolWindow columns = ops::WindowAt(geometry, 1, in.width, ow);
        const Places pixels{.channels = last - first,
                            .rows = rows.end - rows.begin,
                            .columns = columns.end - columns.begin,
                            .row_step = in.width * in.channels,
                            .step = in.channels,
                            .code = code.At(oh, ow, rows.begin, columns.begin),
                            .code_row = code.At(oh, ow, 1, 0) - code.At(oh, ow, 0, 0),
                            .code_step = 1};
        fn(pixels, rows.size * columns.size, in.Offset(n, rows.begin, columns.begin) + first,
           out.Offset(n, oh, ow) + first);
      }
    }
  });
}

// `masks` is null if no mask is requested.
template <typename T, typename M>
void MaxPool(const ops::MaxPool& op, const TensorView& x, const TensorView& y, M* masks) {
  const ops::MaskCode code(op.geometry, x.shape[3],
                           std::is_same_v<M, uint8_t> ? DType::kUInt8 : DType::kFloat);
  ForEachWindow(op.geometry, code, x, y,
                [&](const Places& pixels, int64_t, int64_t from, int64_t to) {
                  RunInLanes<kMaxOfWindow, kWideLanes<T>>(pixels.channels, x.as<const T>() + from,
                                                          pixels, code.none(), y.as<T>() + to,
                                                          masks == nullptr ? masks : masks + to);
                });
}

template <typename T>
void MaxPool(const ops::MaxPool& op, const KernelContext& ctx) {
  if (!ctx.has_output(1)) {
    MaxPool<T, NoMask>(op, ctx.input(0), ctx.output(0), nullptr);
    return;
  }
  VisitMask(ctx.output(1).dtype, [&]<typename M>(TypeTag<M>) {
    MaxPool<T, M>(op, ctx.input(0), ctx.output(0), ctx.output(1).as<M>());
  });
}

template <typename T>
void AvePool(const ops::AvePool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  ForEachWindow(op.geometry, {op.geometry, x.shape[3], DType::kFloat}, x, y,
                [&](const Places& pixels, int64_t size, int64_t from, int64_t to) {
                  if (size == 1 && pixels.rows == 1 && pixels.columns == 1) {
                    std::copy_n(x.as<const T>() + from, pixels.channels, y.as<T>() + to);
                    return;
                  }
                  RunInLanes<kMeanOfWindow, kWideLanes<float>>(
                      pixels.channels, x.as<const T>() + from, pixels,
                      1.0f / static_cast<float>(size), y.as<T>() + to);
                });
}

// Output positions [begin, end) along one axis with windows that may cover input position `at`.
struct Covering {
  int64_t begin = 0, end = 0;

  Covering(const ops::PoolGeometry& geometry, int axis, int64_t outputs, int64_t at) {
    const int64_t last = at + geometry.pad[axis], first = last - geometry.kernel[axis] + 1;
    begin = first <= 0 ? 0 : (first + geometry.stride[axis] - 1) / geometry.stride[axis];
    end = std::min(outputs, last / geometry.stride[axis] + 1);
  }
};

// Calls fn(windows, index of the first one in its image, its offset in dy, the pixel's offset) for
// each pixel with the windows that may cover it. The pixel's dx is the sum of their contributions.
template <typename Fn>
void ForEachPixel(const ops::PoolGeometry& geometry, const ops::MaskCode& code,
                  const TensorView& dy, const TensorView& dx, const Fn& fn) {
  const Extents in(dx.shape), out(dy.shape);
  ForEachRow(dx.shape, [&](int64_t n, int64_t h) {
    const Covering rows(geometry, 0, out.height, h);
    for (int64_t w = 0; w < in.width; ++w) {
      const Covering columns(geometry, 1, out.width, w);
      const int first = code.At(0, 0, h, w);
      const Places windows{.channels = out.channels,
                           .rows = rows.end - rows.begin,
                           .columns = columns.end - columns.begin,
                           .row_step = out.width * out.channels,
                           .step = out.channels,
                           .code = code.At(rows.begin, columns.begin, h, w),
                           .code_row = code.At(1, 0, h, w) - first,
                           .code_step = code.At(0, 1, h, w) - first};
      fn(windows, rows.begin * out.width + columns.begin, out.Offset(n, rows.begin, columns.begin),
         in.Offset(n, h, w));
    }
  });
}

template <typename T>
void MaxPoolGrad(const ops::MaxPoolGrad& op, const KernelContext& ctx) {
  const TensorView &mask = ctx.input(0), &dy = ctx.input(1), &dx = ctx.output(0);
  const ops::MaskCode code(op.geometry, dx.shape[3], mask.dtype);
  VisitMask(mask.dtype, [&]<typename M>(TypeTag<M>) {
    ForEachPixel(op.geometry, code, dy, dx,
                 [&](const Places& windows, int64_t, int64_t from, int64_t to) {
                   RunInLanes<kMaxGradOfPixel, kWideLanes<float>>(
                       windows.channels, mask.as<const M>() + from, dy.as<const T>() + from,
                       windows, dx.as<T>() + to);
                 });
  });
}

// 1 / size of each window of one image.
std::vector<float> SharesOf(const ops::PoolGeometry& geometry, const Shape& dy, const Shape& dx) {
  std::vector<float> shares;
  for (int64_t oh = 0; oh < dy[2]; ++oh) {
    const int64_t rows = ops::WindowAt(geometry, 0, dx[2], oh).size;
    for (int64_t ow = 0; ow < dy[3]; ++ow) {
      const int64_t columns = ops::WindowAt(geometry, 1, dx[3], ow).size;
      shares.push_back(1.0f / static_cast<float>(rows * columns));
    }
  }
  return shares;
}

template <typename T>
void AvePoolGrad(const ops::AvePoolGrad& op, const float* shares, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(0), &dx = ctx.output(0);
  const int64_t outputs = dy.shape[3];
  ForEachPixel(op.geometry, {op.geometry, dx.shape[3], DType::kFloat}, dy, dx,
               [&](const Places& windows, int64_t first, int64_t from, int64_t to) {
                 if (windows.rows <= 0 || windows.columns <= 0) {
                   std::fill_n(dx.as<T>() + to, windows.channels, T(0.0F));
                   return;
                 }
                 if (windows.rows * windows.columns == 1 && shares[first] == 1) {
                   std::copy_n(dy.as<const T>() + from, windows.channels, dx.as<T>() + to);
                   return;
                 }
                 RunInLanes<kMeanGradOfPixel, kWideLanes<float>>(
                     windows.channels, dy.as<const T>() + from, windows, shares + first, outputs,
                     dx.as<T>() + to);
               });
}

constexpr auto kMaxPool = []<typename T>(TypeTag<T>, const auto& op, const KernelContext& ctx) {
  MaxPool<T>(op, ctx);
};
constexpr auto kMaxPoolGrad = []<typename T>(TypeTag<T>, const auto& op, const KernelContext& ctx) {
  MaxPoolGrad<T>(op, ctx);
};
constexpr auto kAvePool = []<typename T>(TypeTag<T>, const auto& op, const KernelContext& ctx) {
  AvePool<T>(op, ctx);
};
template <typename Op, const auto& kRun>
KernelOrRefusal MakePoolChannelsLast(const Op& op, const KernelRequest& request) {
  if (const auto refusal = RefuseUnlessChannelsLast(request)) return *refusal;
  const DType type = request.outputs[0].dtype;
  return Kernel{"", [op, type](const KernelContext& ctx) {
                  VisitNarrow(type, [&](auto tag) { kRun(tag, op, ctx); });
                }};
}

KernelOrRefusal MakeAvePoolGrad(const ops::AvePoolGrad& op, const KernelRequest& request) {
  if (const auto refusal = RefuseUnlessChannelsLast(request)) return *refusal;
  const DType type = request.outputs[0].dtype;
  std::vector<float> shares =
      SharesOf(op.geometry, request.inputs[0].shape, request.outputs[0].shape);
  return Kernel{
      "", [op, type, shares = std::move(shares)](const KernelContext& ctx) {
        VisitNarrow(type, [&]<typename T>(TypeTag<T>) { AvePoolGrad<T>(op, shares.data(), ctx); });
      }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::MaxPool, "max-pool-channels-last",
                              KernelRank::kGood, (MakePoolChannelsLast<ops::MaxPool, kMaxPool>),
                              ChannelsLastTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::MaxPoolGrad, "max-pool-grad-channels-last",
                              KernelRank::kGood,
                              (MakePoolChannelsLast<ops::MaxPoolGrad, kMaxPoolGrad>),
                              ChannelsLastTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::AvePool, "ave-pool-channels-last",
                              KernelRank::kGood, (MakePoolChannelsLast<ops::AvePool, kAvePool>),
                              ChannelsLastTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::AvePoolGrad, "ave-pool-grad-channels-last",
                              KernelRank::kGood, MakeAvePoolGrad, ChannelsLastTraits());

}  // namespace
}  // namespace caffe::cpu
