#include "caffe/ops/convert.hpp"

#include "caffe/ops/read_again.hpp"

namespace caffe::ops {
namespace {

// Only the part's own channels of the two whole tensors are read or written.
const ReadAgain<InsertChannels> insert([](const InsertChannels& op, OperandDescs inputs,
                                          OperandDescs outputs) {
  const double whole = BytesOf(outputs, 0);
  const double part =
      whole * static_cast<double>(op.channels) / static_cast<double>(outputs[0]->shape[1]);
  return part - whole - BytesOf(inputs, InsertChannels::kWhole);
});

// Only the part of x is read.
const ReadAgain<SliceOf> slice([](const SliceOf&, OperandDescs inputs, OperandDescs outputs) {
  return BytesOf(outputs, 0) - BytesOf(inputs, 0);
});

}  // namespace
}  // namespace caffe::ops
