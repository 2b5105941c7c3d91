// Epilogue entries without operands, as a kernel parameter.
#pragma once

#include "caffe/ops/epilogue.hpp"

namespace caffe::cuda {

class Entries {
 public:
  static constexpr size_t kMost = 2;

  // `epilogue` must satisfy EntriesFit().
  explicit Entries(const ops::Epilogue& epilogue) {
    for (const ops::Pointwise& entry : epilogue) entries_[count_++] = entry;
  }
  template <typename A>
  CAFFE_HOST_DEVICE A Apply(A value) const {
    for (int i = 0; i < count_; ++i) value = ops::ApplyPointwise(entries_[i], value);
    return value;
  }

 private:
  ops::Pointwise entries_[kMost];
  int count_ = 0;
};

inline bool EntriesFit(const ops::Epilogue& epilogue) {
  if (epilogue.size() > Entries::kMost) return false;
  for (const ops::Pointwise& entry : epilogue) {
    if (entry.operand >= 0) return false;
  }
  return true;
}

// True for the epilogues that cuDNN's engines support after a convolution, which all convolution
// kernels therefore declare.
inline bool IsReluAlone(const ops::Epilogue& epilogue) {
  return epilogue.empty() ||
         (epilogue.size() == 1 && epilogue[0].kind == ops::Pointwise::Kind::kRelu);
}

}  // namespace caffe::cuda
