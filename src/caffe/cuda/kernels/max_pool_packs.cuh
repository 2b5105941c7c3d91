// Max pooling of channels-last images, a pack of channels per thread, with a mask of bytes
// (ops::MaskCode) and a kernel size known at compile time.
//
// No load depends on a branch: outside the image a thread reads the nearest position inside again.
#pragma once

#include <cfloat>

#include "caffe/cuda/divisor.cuh"
#include "caffe/cuda/pack.cuh"
#include "caffe/ops/pool.hpp"

namespace caffe::cuda {

__device__ inline int Clamp(int x, int least, int most) {
  return x < least ? least : x > most ? most : x;
}

// Indices of an image's packs as 32-bit numbers.
struct PackImage {
  int height = 0, width = 0, packs = 0;  // in a pixel

  PackImage(const TensorDesc& x, int pack)
      : height(static_cast<int>(x.shape[2])),
        width(static_cast<int>(x.shape[3])),
        packs(static_cast<int>(x.shape[1]) / pack) {}
  __device__ uint32_t Row(uint32_t item, int h) const { return item * height + h; }
  __device__ uint32_t At(uint32_t row, int w, uint32_t c) const {
    return (row * width + w) * packs + c;
  }
};

// One axis of a window of size K.
struct PackAxis {
  int stride, pad;

  PackAxis(const ops::PoolGeometry& geometry, int axis)
      : stride(static_cast<int>(geometry.stride[axis])),
        pad(static_cast<int>(geometry.pad[axis])) {}
};

inline constexpr int kNone = 255;

// The maxima of values of N channels, and the positions (names) of the first maxima. Names are
// bytes; kNone if no value exceeds the lowest possible one.
template <typename T, int N>
struct MaxOfPacks {
  Accum<T> best[N];
  int winners[N];

  // `none`: the name to use if nothing is taken.
  __device__ explicit MaxOfPacks(int none = kNone) {
#pragma unroll
    for (int k = 0; k < N; ++k) best[k] = -FLT_MAX, winners[k] = none;
  }
  // Merges maxima of values that come after those taken here.
  __device__ void Take(const MaxOfPacks& later) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (later.best[k] > best[k]) best[k] = later.best[k], winners[k] = later.winners[k];
    }
  }
  // Subtracts `less` from every name.
  __device__ void Rename(int less) {
#pragma unroll
    for (int k = 0; k < N; ++k) winners[k] -= less;
  }
  __device__ void Take(const Pack<T, N>& x, int name) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const Accum<T> value = Wide(x.values[k]);
      if (value > best[k]) best[k] = value, winners[k] = name;
    }
  }
  __device__ Pack<T, N> Values() const {
    Pack<T, N> values;
#pragma unroll
    for (int k = 0; k < N; ++k) values.values[k] = T(best[k]);
    return values;
  }
  __device__ Pack<uint8_t, N> Winners() const {
    Pack<uint8_t, N> bytes;
#pragma unroll
    for (int k = 0; k < N; ++k) bytes.values[k] = static_cast<uint8_t>(winners[k]);
    return bytes;
  }
};

// Sets all bits in each half of a word where that of a is greater than that of b.
template <typename T>
__device__ inline uint32_t GreaterHalves(TypeTag<T>, uint32_t a, uint32_t b) {
  const auto is_greater = [](uint32_t x, uint32_t y) {
    T first, second;
    first.bits = static_cast<uint16_t>(x), second.bits = static_cast<uint16_t>(y);
    return Wide(first) > Wide(second);
  };
  return (is_greater(a, b) ? 0xffffu : 0) | (is_greater(a >> 16, b >> 16) ? 0xffff0000u : 0);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ inline uint32_t GreaterHalves(TypeTag<bfloat16>, uint32_t a, uint32_t b) {
  uint32_t halves;
  asm("set.gt.u32.bf16x2 %0, %1, %2;" : "=r"(halves) : "r"(a), "r"(b));
  return halves;
}
__device__ inline uint32_t GreaterHalves(TypeTag<float16>, uint32_t a, uint32_t b) {
  uint32_t halves;
  asm("set.gt.u32.f16x2 %0, %1, %2;" : "=r"(halves) : "r"(a), "r"(b));
  return halves;
}
#endif

// 16-bit numbers are compared and kept in pairs, in their layout in memory.
template <typename T, int N>
requires(sizeof(T) == 2 && N % 4 == 0) struct MaxOfPacks<T, N> {
  uint32_t best[N / 2], winners[N / 2];

  __device__ explicit MaxOfPacks(int none = kNone) {
    const T least(-INFINITY);
#pragma unroll
    for (int k = 0; k < N / 2; ++k) {
      best[k] = least.bits * 0x10001u;
      winners[k] = static_cast<uint32_t>(none) * 0x10001u;
    }
  }
  __device__ void Take(const Pack<T, N>& x, int name) {
    const auto words = std::bit_cast<PackWords<N>>(x);
    const uint32_t names = static_cast<uint32_t>(name) * 0x10001u;
#pragma unroll
    for (int k = 0; k < N / 2; ++k) TakeWord(k, words.values[k], names);
  }
  __device__ void Take(const MaxOfPacks& later) {
#pragma unroll
    for (int k = 0; k < N / 2; ++k) TakeWord(k, later.best[k], later.winners[k]);
  }
  __device__ void Rename(int less) {
#pragma unroll
    for (int k = 0; k < N / 2; ++k) winners[k] -= static_cast<uint32_t>(less) * 0x10001u;
  }
  __device__ Pack<T, N> Values() const {
    PackWords<N> words;
#pragma unroll
    for (int k = 0; k < N / 2; ++k) words.values[k] = best[k];
    return std::bit_cast<Pack<T, N>>(words);
  }
  __device__ Pack<uint8_t, N> Winners() const {
    Pack<uint8_t, N> bytes;
#pragma unroll
    for (int k = 0; k < N; ++k)
      bytes.values[k] = static_cast<uint8_t>(winners[k / 2] >> (k % 2 * 16));
    return bytes;
  }

 private:
  __device__ void TakeWord(int k, uint32_t values, uint32_t names) {
    const uint32_t greater = GreaterHalves(TypeTag<T>{}, values, best[k]);
    best[k] = (values & greater) | (best[k] & ~greater);
    winners[k] = (names & greater) | (winners[k] & ~greater);
  }
};

template <typename T, int N, int K>
struct MaxPoolPacks {
  PackImage in;
  Divisor packs, width, height;  // of the result
  PackAxis rows, columns;
  const T* x;
  T* y;
  uint8_t* mask;  // may be null

  MaxPoolPacks(const ops::PoolGeometry& geometry, const TensorView& x, const TensorView& y,
               uint8_t* mask)
      : in(x, N),
        packs(y.shape[1] / N),
        width(y.shape[3]),
        height(y.shape[2]),
        rows(geometry, 0),
        columns(geometry, 1),
        x(x.as<const T>()),
        y(y.as<T>()),
        mask(mask) {}

  __device__ void operator()(int64_t i) const {
    uint32_t c, ow, oh;
    const uint32_t pixel = packs.Divide(static_cast<uint32_t>(i), &c);
    const uint32_t item = height.Divide(width.Divide(pixel, &ow), &oh);
    const int top = static_cast<int>(oh) * rows.stride - rows.pad;
    const int left = static_cast<int>(ow) * columns.stride - columns.pad;
    Pack<T, N> values[K][K];
    int names[K][K];
#pragma unroll
    for (int r = 0; r < K; ++r) {
      const int h = Clamp(top + r, 0, in.height - 1);
#pragma unroll
      for (int s = 0; s < K; ++s) {
        const int w = Clamp(left + s, 0, in.width - 1);
        values[r][s] = PackAt<T, N>(x, in.At(in.Row(item, h), w, c));
        names[r][s] = (h - top) * K + w - left;
      }
    }
    MaxOfPacks<T, N> most;
#pragma unroll
    for (int r = 0; r < K; ++r) {
#pragma unroll
      for (int s = 0; s < K; ++s) most.Take(values[r][s], names[r][s]);
    }
    reinterpret_cast<Pack<T, N>*>(y)[i] = most.Values();
    if (mask != nullptr) reinterpret_cast<Pack<uint8_t, N>*>(mask)[i] = most.Winners();
  }
};

// The same for 3x3 windows with stride 1: a thread computes two results, one above the other, which
// share two rows of three.
template <typename T, int N>
struct MaxPoolPairs {
  static constexpr int K = 3;
  PackImage in;
  Divisor packs, width, pairs;  // of the result
  int height, top_pad, left_pad;
  const T* x;
  T* y;
  uint8_t* mask;  // may be null

  MaxPoolPairs(const ops::PoolGeometry& geometry, const TensorView& x, const TensorView& y,
               uint8_t* mask)
      : in(x, N),
        packs(y.shape[1] / N),
        width(y.shape[3]),
        pairs((y.shape[2] + 1) / 2),
        height(static_cast<int>(y.shape[2])),
        top_pad(static_cast<int>(geometry.pad[0])),
        left_pad(static_cast<int>(geometry.pad[1])),
        x(x.as<const T>()),
        y(y.as<T>()),
        mask(mask) {}

  int64_t count(int64_t items) const { return items * pairs.value * width.value * packs.value; }

  __device__ void operator()(int64_t i) const {
    uint32_t c, ow, pair;
    const uint32_t pixel = packs.Divide(static_cast<uint32_t>(i), &c);
    const uint32_t item = pairs.Divide(width.Divide(pixel, &ow), &pair);
    const int oh = static_cast<int>(pair) * 2;
    const int top = oh - top_pad, left = static_cast<int>(ow) - left_pad;
    Pack<T, N> values[K + 1][K];
    int names[K + 1], columns[K];
#pragma unroll
    for (int s = 0; s < K; ++s) columns[s] = Clamp(left + s, 0, in.width - 1);
#pragma unroll
    for (int r = 0; r <= K; ++r) {
      const int h = Clamp(top + r, 0, in.height - 1);
      names[r] = (h - top) * K - left;
#pragma unroll
      for (int s = 0; s < K; ++s)
        values[r][s] = PackAt<T, N>(x, in.At(in.Row(item, h), columns[s], c));
    }
    // Names of positions in the window above; those in the window below are less by K.
    MaxOfPacks<T, N> above, below(kNone + K);
#pragma unroll
    for (int r = 0; r <= K; ++r) {
      MaxOfPacks<T, N> row;
#pragma unroll
      for (int s = 0; s < K; ++s) row.Take(values[r][s], names[r] + columns[s]);
      if (r < K) above.Take(row);
      if (r > 0) below.Take(row);
    }
    const uint32_t row_packs = width.value * packs.value;
    const uint32_t at = (item * height + oh) * row_packs + ow * packs.value + c;
    Store(at, above);
    below.Rename(K);
    if (oh + 1 < height) Store(at + row_packs, below);
  }

 private:
  __device__ void Store(uint32_t at, const MaxOfPacks<T, N>& most) const {
    reinterpret_cast<Pack<T, N>*>(y)[at] = most.Values();
    if (mask != nullptr) reinterpret_cast<Pack<uint8_t, N>*>(mask)[at] = most.Winners();
  }
};

// The gradient of a cell of H x W neighbouring positions, multiples of the stride S, which share
// the windows that contain them.
template <typename T, int N, int K, int S, int H, int W>
struct MaxPoolGradientPacks {
  static_assert(H % S == 0 && W % S == 0);
  // Along an axis: the number of windows that begin before the cell and reach into it, and of all.
  static constexpr int kBefore = (K - 1) / S;
  static constexpr int kRows = kBefore + H / S, kColumns = kBefore + W / S;
  using A = Accum<T>;
  PackImage in, out;
  Divisor packs, cells_across, cells_down;
  int pad_rows, pad_columns;
  const T* dy;
  const uint8_t* mask;
  T* dx;
  // A value that the compiler does not know, so that testing a byte takes one instruction, not two.
  uint32_t ones = 0x01010101u;

  MaxPoolGradientPacks(const ops::PoolGeometry& geometry, const TensorView& dx,
                       const TensorView& dy, const uint8_t* mask)
      : in(dx, N),
        out(dy, N),
        packs(in.packs),
        cells_across((in.width + geometry.pad[1] + W - 1) / W),
        cells_down((in.height + geometry.pad[0] + H - 1) / H),
        pad_rows(static_cast<int>(geometry.pad[0])),
        pad_columns(static_cast<int>(geometry.pad[1])),
        dy(dy.as<const T>()),
        mask(mask),
        dx(dx.as<T>()) {}

  int64_t cells(int64_t items) const {
    return items * cells_down.value * cells_across.value * packs.value;
  }

  // A window's gradients and winners; a word holds four winners.
  static constexpr int kWords = (N + 3) / 4;
  struct Window {
    Pack<T, N> dy;
    Pack<uint32_t, kWords> winners;
  };
  // A row or column of windows: the offset of its packs, and 0xff in each byte if it is outside the
  // result, so that its windows name no position.
  struct Line {
    uint32_t at, beside;
  };
  __device__ static Line LineOf(int place, int places, uint32_t first, uint32_t step) {
    const int inside = Clamp(place, 0, places - 1);
    return {first + static_cast<uint32_t>(inside) * step, inside == place ? 0 : ~0u};
  }
  __device__ Window Load(const Line& row, const Line& column) const {
    const uint32_t at = row.at + column.at;
    Window window{PackAt<T, N>(dy, at), Winners(at)};
#pragma unroll
    for (uint32_t& word : window.winners.values) word |= row.beside | column.beside;
    return window;
  }
  __device__ Pack<uint32_t, kWords> Winners(uint32_t at) const {
    if constexpr (N % 4 == 0) {
      return PackAt<uint32_t, kWords>(reinterpret_cast<const uint32_t*>(mask), at);
    } else {
      const auto bytes = PackAt<uint8_t, N>(mask, at);
      Pack<uint32_t, kWords> words{};
#pragma unroll
      for (int k = 0; k < N; ++k)
        words.values[0] |= static_cast<uint32_t>(bytes.values[k]) << (8 * k);
      return words;
    }
  }
  __device__ void Add(const Window& window, uint32_t name, WidePack<T, N>& sums) const {
    const WidePack<T, N> dy = Widen(window.dy);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const uint32_t differs = window.winners.values[k / 4] ^ (name * ones);
      if ((differs & (0xffu << (k % 4 * 8))) == 0) sums.values[k] += dy.values[k];
    }
  }

  __device__ void operator()(int64_t i) const {
    uint32_t c, across, down;
    const uint32_t cell = packs.Divide(static_cast<uint32_t>(i), &c);
    const uint32_t item = cells_down.Divide(cells_across.Divide(cell, &across), &down);
    const uint32_t row_packs = static_cast<uint32_t>(out.width) * out.packs;
    Line rows[kRows], columns[kColumns];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      rows[r] = LineOf(static_cast<int>(down) * (H / S) - kBefore + r, out.height,
                       item * out.height * row_packs + c, row_packs);
    }
#pragma unroll
    for (int s = 0; s < kColumns; ++s)
      columns[s] =
          LineOf(static_cast<int>(across) * (W / S) - kBefore + s, out.width, 0, out.packs);
    WidePack<T, N> sums[H][W] = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      Window windows[kColumns];
#pragma unroll
      for (int s = 0; s < kColumns; ++s) windows[s] = Load(rows[r], columns[s]);
      AddRow(windows, r, sums);
    }
#pragma unroll
    for (int a = 0; a < H; ++a) {
#pragma unroll
      for (int b = 0; b < W; ++b) {
        const int h = static_cast<int>(down) * H + a - pad_rows;
        const int w = static_cast<int>(across) * W + b - pad_columns;
        if (static_cast<unsigned>(h) < static_cast<unsigned>(in.height) &&
            static_cast<unsigned>(w) < static_cast<unsigned>(in.width)) {
          StorePack(dx, in.At(in.Row(item, h), w, c), sums[a][b]);
        }
      }
    }
  }

 private:
  // Adds the gradients of row r of the windows at the positions of the cell that they contain.
  __device__ void AddRow(const Window (&windows)[kColumns], int r,
                         WidePack<T, N> (&sums)[H][W]) const {
#pragma unroll
    for (int a = 0; a < H; ++a) {
#pragma unroll
      for (int b = 0; b < W; ++b) {
#pragma unroll
        for (int s = 0; s < kColumns; ++s) {
          const int row = a + (kBefore - r) * S, column = b + (kBefore - s) * S;
          if (row >= 0 && row < K && column >= 0 && column < K)
            Add(windows[s], static_cast<uint32_t>(row * K + column), sums[a][b]);
        }
      }
    }
  }
};

}  // namespace caffe::cuda
