#include "caffe/data/transformers/transform_rows.hpp"

// Sanitizers cannot run the resolvers that choose a clone before they have started themselves.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CAFFE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CAFFE_CLONES
#endif

namespace caffe::data {
namespace {

// Four loops rather than one with conditions: each vectorises.
template <typename T>
[[gnu::always_inline]] inline void Loops(const RowTransform& transform, const T* __restrict x,
                                         int count, float* __restrict y) {
  const float* __restrict mean_row = transform.mean_row;
  const float mean = transform.mean_value;
  const float scale = transform.scale;
  const int last = count - 1;
  if (mean_row != nullptr && transform.mirror) {
    for (int i = 0; i < count; ++i) {
      y[i] = (static_cast<float>(x[last - i]) - mean_row[last - i]) * scale;
    }
  } else if (mean_row != nullptr) {
    for (int i = 0; i < count; ++i) y[i] = (static_cast<float>(x[i]) - mean_row[i]) * scale;
  } else if (transform.mirror) {
    for (int i = 0; i < count; ++i) y[i] = (static_cast<float>(x[last - i]) - mean) * scale;
  } else {
    for (int i = 0; i < count; ++i) y[i] = (static_cast<float>(x[i]) - mean) * scale;
  }
}

}  // namespace

CAFFE_CLONES void TransformRow(const RowTransform& transform, const uint8_t* x, int count,
                               float* y) {
  Loops(transform, x, count, y);
}

CAFFE_CLONES void TransformRow(const RowTransform& transform, const float* x, int count, float* y) {
  Loops(transform, x, count, y);
}

CAFFE_CLONES void SplitThreeChannels(const uint8_t* __restrict x, int count,
                                     uint8_t* __restrict first, uint8_t* __restrict second,
                                     uint8_t* __restrict third) {
  for (int i = 0; i < count; ++i) {
    first[i] = x[3 * i];
    second[i] = x[3 * i + 1];
    third[i] = x[3 * i + 2];
  }
}

}  // namespace caffe::data
