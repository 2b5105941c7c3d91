// Average pooling of channels-last images, a pack of channels per thread, with 32-bit indices.
//
// As in max_pool_packs.cuh no load depends on a branch: outside the image a thread reads the
// nearest position inside again, and then clears what it has read.
#pragma once

#include <cmath>

#include "caffe/cuda/kernels/max_pool_packs.cuh"

namespace caffe::cuda {

// One axis of average pooling.
struct AveAxis {
  int kernel, stride, pad, in, out;
  Divisor by_stride;

  AveAxis(const ops::PoolGeometry& geometry, int axis, const TensorDesc& image,
          const TensorDesc& result)
      : kernel(static_cast<int>(geometry.kernel[axis])),
        stride(static_cast<int>(geometry.stride[axis])),
        pad(static_cast<int>(geometry.pad[axis])),
        in(static_cast<int>(image.shape[2 + axis])),
        out(static_cast<int>(result.shape[2 + axis])),
        by_stride(geometry.stride[axis]) {}

  // True if the last window is larger than what is left of image and padding.
  bool is_clipped() const { return (out - 1) * stride - pad + kernel > in + pad; }
  // The most windows that contain a position.
  int holders() const { return std::min((kernel + stride - 1) / stride, out); }
  __device__ int Start(int output) const { return output * stride - pad; }
  // The divisor's part of this axis, as in ops::WindowAt.
  __device__ int Size(int output) const {
    return std::max(std::min(Start(output) + kernel, in + pad) - Start(output), 1);
  }
  // The windows that contain a position: [first, last].
  __device__ int First(int at) const {
    const int past = at + pad - kernel;
    return past < 0 ? 0 : static_cast<int>(by_stride.Divide(static_cast<uint32_t>(past))) + 1;
  }
  __device__ int Last(int at) const {
    return std::min(static_cast<int>(by_stride.Divide(static_cast<uint32_t>(at + pad))), out - 1);
  }
};

// sum / size for the reciprocal of size, rounded like the division.
template <typename A>
__device__ inline A Quotient(A sum, A size, A reciprocal) {
  const A quotient = sum * reciprocal;
  const A nearer = std::fma(std::fma(-quotient, size, sum), reciprocal, quotient);
  return nearer == nearer ? nearer : quotient;  // an infinite sum
}

// The reciprocals of windows' sizes, computed by the host.
template <typename A>
struct Shares {
  static constexpr int kMost = 64;
  int whole;            // the size of windows that are not clipped
  A values[kMost + 1];  // element 0: of a whole window

  Shares(const AveAxis& rows, const AveAxis& columns) : whole(rows.kernel * columns.kernel) {
    values[0] = A(1) / static_cast<A>(whole);
    for (int size = 1; size <= kMost; ++size) values[size] = A(1) / static_cast<A>(size);
  }
  // True if it has all sizes.
  static bool Fit(const AveAxis& rows, const AveAxis& columns) {
    return rows.kernel * columns.kernel <= kMost || (!rows.is_clipped() && !columns.is_clipped());
  }
  __device__ A Of(int size) const { return values[size == whole ? 0 : size]; }
  // Divides the sums over a window.
  template <typename Sums>
  __device__ void Divide(int size, Sums& sums) const {
    const A share = Of(size);
#pragma unroll
    for (A& sum : sums.values) sum = Quotient(sum, static_cast<A>(size), share);
  }
};

// Zeros in place of a pack that is not inside.
template <typename T, int N>
__device__ inline WidePack<T, N> WidenInside(const Pack<T, N>& x, bool is_inside) {
  using Words = Pack<uint32_t, static_cast<int>(sizeof(x) / 4)>;
  auto words = std::bit_cast<Words>(x);
#pragma unroll
  for (uint32_t& word : words.values) word &= is_inside ? ~0u : 0u;
  return Widen(std::bit_cast<Pack<T, N>>(words));
}

// Windows of K columns are read whole; if K is 0, windows of any size are read by fours.
template <typename T, int N, int K>
struct AvePoolPacks {
  static constexpr int kAhead = K > 0 ? K : 4;
  using A = Accum<T>;
  PackImage in;
  Divisor packs, width, height;  // of the result
  AveAxis rows, columns;
  Shares<A> shares;
  const T* x;
  T* y;

  AvePoolPacks(const ops::PoolGeometry& geometry, const TensorView& x, const TensorView& y)
      : in(x, N),
        packs(y.shape[1] / N),
        width(y.shape[3]),
        height(y.shape[2]),
        rows(geometry, 0, x, y),
        columns(geometry, 1, x, y),
        shares(rows, columns),
        x(x.as<const T>()),
        y(y.as<T>()) {}

  __device__ void operator()(int64_t i) const {
    uint32_t c, ow, oh;
    const uint32_t pixel = packs.Divide(static_cast<uint32_t>(i), &c);
    const uint32_t item = height.Divide(width.Divide(pixel, &ow), &oh);
    const int top = rows.Start(static_cast<int>(oh)), left = columns.Start(static_cast<int>(ow));
    WidePack<T, N> sums{};
    if constexpr (K > 0) {
#pragma unroll
      for (int r = 0; r < K; ++r) AddColumns(item, c, top + r, left, left + K, sums);
    } else {
      const int bottom = std::min(top + rows.kernel, in.height);
      const int right = std::min(left + columns.kernel, in.width);
      for (int h = std::max(top, 0); h < bottom; ++h) {
        for (int w = std::max(left, 0); w < right; w += kAhead)
          AddColumns(item, c, h, w, right, sums);
      }
    }
    shares.Divide(rows.Size(static_cast<int>(oh)) * columns.Size(static_cast<int>(ow)), sums);
    StorePack(y, i, sums);
  }

 private:
  // Adds columns [w, w + kAhead), which end before `end`, of row h.
  __device__ void AddColumns(uint32_t item, uint32_t c, int h, int w, int end,
                             WidePack<T, N>& sums) const {
    const uint32_t row = in.Row(item, Clamp(h, 0, in.height - 1));
    Pack<T, N> loaded[kAhead];
#pragma unroll
    for (int s = 0; s < kAhead; ++s)
      loaded[s] = PackAt<T, N>(x, in.At(row, Clamp(w + s, 0, in.width - 1), c));
#pragma unroll
    for (int s = 0; s < kAhead; ++s) {
      const bool is_inside = static_cast<unsigned>(h) < static_cast<unsigned>(in.height) &&
                             static_cast<unsigned>(w + s) < static_cast<unsigned>(in.width) &&
                             w + s < end;
      const WidePack<T, N> wide = WidenInside(loaded[s], is_inside);
#pragma unroll
      for (int k = 0; k < N; ++k) sums.values[k] += wide.values[k];
    }
  }
};

// The gradient of a position that at most H windows along each axis contain.
template <typename T, int N, int H>
struct AvePoolGradientPacks {
  using A = Accum<T>;
  PackImage out;
  Divisor packs, width, height;  // of dx
  AveAxis rows, columns;
  Shares<A> shares;
  const T* dy;
  T* dx;

  AvePoolGradientPacks(const ops::PoolGeometry& geometry, const TensorView& dx,
                       const TensorView& dy)
      : out(dy, N),
        packs(dx.shape[1] / N),
        width(dx.shape[3]),
        height(dx.shape[2]),
        rows(geometry, 0, dx, dy),
        columns(geometry, 1, dx, dy),
        shares(rows, columns),
        dy(dy.as<const T>()),
        dx(dx.as<T>()) {}

  __device__ void operator()(int64_t i) const {
    uint32_t c, w, h;
    const uint32_t pixel = packs.Divide(static_cast<uint32_t>(i), &c);
    const uint32_t item = height.Divide(width.Divide(pixel, &w), &h);
    const int top = rows.First(static_cast<int>(h)), bottom = rows.Last(static_cast<int>(h));
    const int left = columns.First(static_cast<int>(w)), right = columns.Last(static_cast<int>(w));
    Pack<T, N> loaded[H][H];
#pragma unroll
    for (int r = 0; r < H; ++r) {
      const uint32_t row = out.Row(item, std::min(top + r, out.height - 1));
#pragma unroll
      for (int s = 0; s < H; ++s)
        loaded[r][s] = PackAt<T, N>(dy, out.At(row, std::min(left + s, out.width - 1), c));
    }
    WidePack<T, N> sums{};
#pragma unroll
    for (int r = 0; r < H; ++r) {
#pragma unroll
      for (int s = 0; s < H; ++s) {
        const bool is_inside = top + r <= bottom && left + s <= right;
        const A share = shares.Of(is_inside ? rows.Size(top + r) * columns.Size(left + s) : 1);
        const WidePack<T, N> wide = WidenInside(loaded[r][s], is_inside);
#pragma unroll
        for (int k = 0; k < N; ++k) sums.values[k] += wide.values[k] * share;
      }
    }
    StorePack(dx, i, sums);
  }
};

// Pooling of windows of 3x3 with a stride of 1, or its gradient: both sum 3x3 neighbours, and the
// gradient first multiplies each with its window's share. A thread computes two results, one above
// the other, which share two rows of neighbours.
template <typename T, int N, bool kIsGradient>
struct AvePoolPairs {
  static constexpr int K = 3;
  using A = Accum<T>;
  PackImage from;
  Divisor packs, width, pairs;  // of the result
  int height, above, before;    // neighbours that come first
  AveAxis rows, columns;
  Shares<A> shares;
  const T* x;
  T* y;

  AvePoolPairs(const ops::PoolGeometry& geometry, const TensorView& x, const TensorView& y)
      : from(x, N),
        packs(y.shape[1] / N),
        width(y.shape[3]),
        pairs((y.shape[2] + 1) / 2),
        height(static_cast<int>(y.shape[2])),
        rows(geometry, 0, kIsGradient ? y : x, kIsGradient ? x : y),
        columns(geometry, 1, kIsGradient ? y : x, kIsGradient ? x : y),
        shares(rows, columns),
        x(x.as<const T>()),
        y(y.as<T>()) {
    above = kIsGradient ? K - 1 - rows.pad : rows.pad;
    before = kIsGradient ? K - 1 - columns.pad : columns.pad;
  }

  int64_t count(int64_t items) const { return items * pairs.value * width.value * packs.value; }

  __device__ void operator()(int64_t i) const {
    uint32_t c, across, pair;
    const uint32_t pixel = packs.Divide(static_cast<uint32_t>(i), &c);
    const uint32_t item = pairs.Divide(width.Divide(pixel, &across), &pair);
    const int down = static_cast<int>(pair) * 2;
    const int top = down - above, left = static_cast<int>(across) - before;
    WidePack<T, N> sums[2] = {};
#pragma unroll
    for (int r = 0; r <= K; ++r) {
      const int h = Clamp(top + r, 0, from.height - 1);
      const uint32_t row = from.Row(item, h);
      Pack<T, N> loaded[K];
#pragma unroll
      for (int s = 0; s < K; ++s)
        loaded[s] = PackAt<T, N>(x, from.At(row, Clamp(left + s, 0, from.width - 1), c));
#pragma unroll
      for (int s = 0; s < K; ++s) {
        const int w = Clamp(left + s, 0, from.width - 1);
        const WidePack<T, N> wide = WidenInside(loaded[s], h == top + r && w == left + s);
        const A share = kIsGradient ? shares.Of(rows.Size(h) * columns.Size(w)) : A(1);
        if (r < K) Add(wide, share, sums[0]);
        if (r > 0) Add(wide, share, sums[1]);
      }
    }
#pragma unroll
    for (int a = 0; a < 2; ++a) {
      if (!kIsGradient)
        shares.Divide(rows.Size(down + a) * columns.Size(static_cast<int>(across)), sums[a]);
      if (down + a < height) {
        const uint32_t at = (item * height + down + a) * width.value + across;
        StorePack(y, at * packs.value + c, sums[a]);
      }
    }
  }

 private:
  __device__ static void Add(const WidePack<T, N>& x, A share, WidePack<T, N>& sums) {
#pragma unroll
    for (int k = 0; k < N; ++k) sums.values[k] += kIsGradient ? x.values[k] * share : x.values[k];
  }
};

}  // namespace caffe::cuda
