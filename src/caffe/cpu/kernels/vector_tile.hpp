// Tiles of 16 x 16 elements of 4 bytes in the registers of AVX-512, where transposing them takes 64
// instructions.
#pragma once

#include <cstdint>
#include <cstring>

#include "caffe/cpu/kernels/pixel_sums.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {

// A row per register.
struct VectorTile {
  FloatVector rows[kFloatLanes];

  // Row i is at from + i * step, in bytes.
  CAFFE_FORCE_INLINE void Load(const char* from, int64_t step) {
    Unroll<kFloatLanes>([&](auto i) CAFFE_FORCE_INLINE {
      std::memcpy(&rows[i], from + i * step, sizeof(FloatVector));
    });
  }
  CAFFE_FORCE_INLINE void Store(char* to, int64_t step) const {
    Unroll<kFloatLanes>([&](auto i) CAFFE_FORCE_INLINE {
      std::memcpy(to + i * step, &rows[i], sizeof(FloatVector));
    });
  }
  CAFFE_FORCE_INLINE void Transpose() {
    SwapBlocks<8>();
    SwapBlocks<4>();
    SwapBlocks<2>();
    SwapBlocks<1>();
  }

 private:
  // Swaps the two quarters beyond the diagonal in each block of 2 kSize x 2 kSize elements.
  template <int kSize>
  CAFFE_FORCE_INLINE void SwapBlocks() {
    IntVector first, second;  // lanes of both rows, those of the second from kFloatLanes on
    Unroll<kFloatLanes>([&](auto i) CAFFE_FORCE_INLINE {
      constexpr int lane = i;
      constexpr bool is_right = (lane & kSize) != 0;
      first[lane] = is_right ? kFloatLanes + lane - kSize : lane;
      second[lane] = is_right ? kFloatLanes + lane : lane + kSize;
    });
    Unroll<kFloatLanes>([&](auto i) CAFFE_FORCE_INLINE {
      if constexpr ((i & kSize) == 0) {
        const FloatVector a = rows[i], b = rows[i + kSize];
        rows[i] = __builtin_shuffle(a, b, first);
        rows[i + kSize] = __builtin_shuffle(a, b, second);
      }
    });
  }
};

}  // namespace caffe::cpu
#endif
