#include "caffe/ops/conv_into.hpp"

#include "caffe/ops/read_again.hpp"

namespace caffe::ops {
namespace {

// Only the convolution's own channels of the two whole tensors are read or written.
const ReadAgain<ConvInto> conv_into([](const ConvInto&, OperandDescs inputs, OperandDescs outputs) {
  const double part =
      static_cast<double>(ConvInto::Part(*outputs[0], *inputs[ConvInto::kW]).bytes());
  return part - BytesOf(inputs, ConvInto::kWhole) - BytesOf(outputs, 0);
});

}  // namespace

TensorDesc ConvInto::Part(const TensorDesc& joined, const TensorDesc& w) {
  std::vector<int64_t> dims = joined.shape.dims();
  dims[1] = w.shape[0];
  TensorDesc part = joined;
  part.shape = Shape(dims);
  return part;
}

double ConvInto::Flops(std::span<const TensorDesc> inputs,
                       std::span<const TensorDesc> outputs) const {
  const TensorDesc part = Part(outputs[0], inputs[kW]);
  return conv.Flops(inputs, std::span(&part, 1));
}

}  // namespace caffe::ops
