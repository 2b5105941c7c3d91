#include "caffe/ops/read_again.hpp"

#include <map>
#include <utility>

namespace caffe::ops {
namespace {

std::map<std::type_index, CountBytes>& Counts() {
  static std::map<std::type_index, CountBytes> counts;
  return counts;
}

}  // namespace

double BytesReadAgain(const Op& op, OperandDescs inputs, OperandDescs outputs) {
  const auto found = Counts().find(op.type());
  return found == Counts().end() ? 0 : found->second(op, inputs, outputs);
}

void RegisterReadAgain(std::type_index op, CountBytes count) {
  Counts().emplace(op, std::move(count));
}

}  // namespace caffe::ops
