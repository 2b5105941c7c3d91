// A step of long short-term memory for the units of one item (ops/lstm_unit.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "caffe/core/cpu_clones.hpp"
#include "caffe/cpu/kernels/fast_math.hpp"
#include "caffe/cpu/kernels/simd_math.hpp"
#include "caffe/cpu/parallel.hpp"

namespace caffe::cpu {

inline constexpr int64_t kCellBlock = 128;  // units that are computed together

// Tanh and sigmoid; those of floats are in fast_math.hpp.
inline CAFFE_FORCE_INLINE float TanhOf(float x) {
  return FastTanh(x);
}
inline CAFFE_FORCE_INLINE double TanhOf(double x) {
  return ::tanh(x);
}
inline CAFFE_FORCE_INLINE float SigmoidOf(float x) {
  return FastSigmoid(x);
}
inline CAFFE_FORCE_INLINE double SigmoidOf(double x) {
  return 0.5 * ::tanh(0.5 * x) + 0.5;
}

// The gates of up to kCellBlock units.
template <typename T>
struct LstmGates {
  T i[kCellBlock], f[kCellBlock], o[kCellBlock], g[kCellBlock];

  // `row`: entry of the first unit in the item's 4 x width gates. `cont` is 0 at the beginning of a
  // sequence, which closes the forget gate.
  inline CAFFE_FORCE_INLINE void Load(const T* row, int64_t width, int64_t count, T cont) {
    for (int64_t d = 0; d < count; ++d) i[d] = SigmoidOf(row[d]);
    for (int64_t d = 0; d < count; ++d) f[d] = cont * SigmoidOf(row[width + d]);
    for (int64_t d = 0; d < count; ++d) o[d] = SigmoidOf(row[2 * width + d]);
    for (int64_t d = 0; d < count; ++d) g[d] = TanhOf(row[3 * width + d]);
  }
};

// c and h of one item. c may be c_prev.
template <typename T>
CAFFE_CPU_CLONES void LstmCell(const T* gate_inputs, int64_t width, T cont, const T* c_prev, T* c,
                               T* h) {
  for (int64_t first = 0; first < width; first += kCellBlock) {
    const int64_t count = std::min(kCellBlock, width - first);
    LstmGates<T> gates;
    gates.Load(gate_inputs + first, width, count, cont);
    const T* before = c_prev + first;
    T cell[kCellBlock];  // c may have the memory of c_prev
    for (int64_t d = 0; d < count; ++d) cell[d] = gates.f[d] * before[d] + gates.i[d] * gates.g[d];
    std::copy_n(cell, count, c + first);
    T* out = h + first;
    for (int64_t d = 0; d < count; ++d) out[d] = gates.o[d] * TanhOf(cell[d]);
  }
}

// The gradients of one item: dc and dh may be null, which counts as 0, and dc_prev and dgates,
// which are then not computed. dc_prev may be c_prev or dc.
template <typename T>
CAFFE_CPU_CLONES void LstmCellGrad(const T* gate_inputs, int64_t width, T cont, const T* c_prev,
                                   const T* c, const T* dc, const T* dh, T* dc_prev, T* dgates) {
  for (int64_t first = 0; first < width; first += kCellBlock) {
    const int64_t count = std::min(kCellBlock, width - first);
    LstmGates<T> gates;
    gates.Load(gate_inputs + first, width, count, cont);
    T tanh_c[kCellBlock], before[kCellBlock], from_c[kCellBlock], from_h[kCellBlock];
    const T* cell = c + first;
    for (int64_t d = 0; d < count; ++d) tanh_c[d] = TanhOf(cell[d]);
    std::copy_n(c_prev + first, count, before);  // dc_prev may have the same memory
    for (int64_t d = 0; d < count; ++d) from_h[d] = dh == nullptr ? T(0) : dh[first + d];
    for (int64_t d = 0; d < count; ++d) {
      from_c[d] = (dc == nullptr ? T(0) : dc[first + d]) +
                  from_h[d] * gates.o[d] * (T(1) - tanh_c[d] * tanh_c[d]);
    }
    if (dc_prev != nullptr) {
      for (int64_t d = 0; d < count; ++d) dc_prev[first + d] = from_c[d] * gates.f[d];
    }
    if (dgates == nullptr) continue;
    T* di = dgates + first;
    T *df = di + width, *d_o = df + width, *dg = d_o + width;
    for (int64_t d = 0; d < count; ++d) {
      const T i = gates.i[d], f = gates.f[d], o = gates.o[d], g = gates.g[d];
      di[d] = from_c[d] * g * i * (T(1) - i);
      df[d] = from_c[d] * before[d] * f * (T(1) - f);
      d_o[d] = from_h[d] * tanh_c[d] * o * (T(1) - o);
      dg[d] = from_c[d] * i * (T(1) - g * g);
    }
  }
}

}  // namespace caffe::cpu
