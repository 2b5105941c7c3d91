#include "caffe/ops/loss.hpp"

#include <algorithm>

namespace caffe::ops {

double LabelRule::Divisor(int64_t outer, int64_t inner, int64_t valid) const {
  switch (normalization) {
    case Normalization::kFull:
      return std::max<double>(1, static_cast<double>(outer * inner));
    case Normalization::kValid:
      return std::max<double>(1, static_cast<double>(valid));
    case Normalization::kBatchSize:
      return std::max<double>(1, static_cast<double>(outer));
    case Normalization::kNone:
      return 1;
  }
  throw InternalError("unknown normalization");
}

}  // namespace caffe::ops
