#include "caffe/data/transformers/transform_rows.hpp"

#include <algorithm>

#include "caffe/core/cpu_clones.hpp"

namespace caffe::data {
namespace {

// Four loops instead of one with conditions, so that each is vectorised.
template <typename T>
[[gnu::always_inline]] inline void Loops(const RowTransform& transform, const T* __restrict x,
                                         int count, float* __restrict y) {
  const float* __restrict mean_row = transform.mean_row;
  const float mean = transform.mean_value;
  const float scale = transform.scale;
  const int last = count - 1;
  if (mean_row != nullptr && transform.mirror) {
    for (int i = 0; i < count; ++i) y[i] = (static_cast<float>(x[last - i]) - mean_row[i]) * scale;
  } else if (mean_row != nullptr) {
    for (int i = 0; i < count; ++i) y[i] = (static_cast<float>(x[i]) - mean_row[i]) * scale;
  } else if (transform.mirror) {
    for (int i = 0; i < count; ++i) y[i] = (static_cast<float>(x[last - i]) - mean) * scale;
  } else {
    for (int i = 0; i < count; ++i) y[i] = (static_cast<float>(x[i]) - mean) * scale;
  }
}

// The number of channels is a compile-time constant, so that the loop over pixels is vectorised.
template <int kChannels>
[[gnu::always_inline]] inline void Interleave(const float* const* rows, int count,
                                              float* __restrict y) {
  const float* __restrict channels[kChannels];
  for (int c = 0; c < kChannels; ++c) channels[c] = rows[c];
  for (int i = 0; i < count; ++i) {
    for (int c = 0; c < kChannels; ++c) y[kChannels * i + c] = channels[c][i];
  }
}

[[gnu::always_inline]] inline void Reverse(const uint8_t* __restrict x, int count, int channels,
                                           uint8_t* __restrict y) {
  const auto reverse = [&](int each) {
    for (int i = 0; i < count; ++i) {
      for (int c = 0; c < each; ++c) y[each * i + c] = x[each * (count - 1 - i) + c];
    }
  };
  if (channels == 3) {
    reverse(3);
  } else {
    reverse(channels);
  }
}

template <typename T>
[[gnu::always_inline]] inline void Convert(const float* __restrict x, int64_t count,
                                           T* __restrict y) {
  for (int64_t i = 0; i < count; ++i) y[i] = T(x[i]);
}

CAFFE_CPU_CLONES void ConvertRow(const float* x, int64_t count, float16* y) {
  Convert(x, count, y);
}
CAFFE_CPU_CLONES void ConvertRow(const float* x, int64_t count, bfloat16* y) {
  Convert(x, count, y);
}
void ConvertRow(const float* x, int64_t count, float* y) {
  Convert(x, count, y);
}
void ConvertRow(const float* x, int64_t count, double* y) {
  Convert(x, count, y);
}

}  // namespace

CAFFE_CPU_CLONES void TransformRow(const RowTransform& transform, const uint8_t* x, int count,
                                   float* y) {
  Loops(transform, x, count, y);
}

CAFFE_CPU_CLONES void TransformRow(const RowTransform& transform, const float* x, int count,
                                   float* y) {
  Loops(transform, x, count, y);
}

CAFFE_CPU_CLONES void SplitThreeChannels(const uint8_t* __restrict x, int count,
                                         uint8_t* __restrict first, uint8_t* __restrict second,
                                         uint8_t* __restrict third) {
  for (int i = 0; i < count; ++i) {
    first[i] = x[3 * i];
    second[i] = x[3 * i + 1];
    third[i] = x[3 * i + 2];
  }
}

CAFFE_CPU_CLONES void InterleaveRows(const float* const* rows, int num_rows, int count, int stride,
                                     float* y) {
  if (num_rows == 3 && stride == 3) return Interleave<3>(rows, count, y);
  if (num_rows == 4 && stride == 4) return Interleave<4>(rows, count, y);
  for (int row = 0; row < num_rows; ++row) {
    for (int64_t i = 0; i < count; ++i) y[i * stride + row] = rows[row][i];
  }
}

CAFFE_CPU_CLONES void ReversePixels(const uint8_t* x, int count, int channels, uint8_t* y) {
  Reverse(x, count, channels, y);
}

void ConvertFloats(const float* x, int64_t count, DType dtype, void* y) {
  VisitFloat(dtype, [&]<typename T>(TypeTag<T>) { ConvertRow(x, count, static_cast<T*>(y)); });
}

}  // namespace caffe::data
