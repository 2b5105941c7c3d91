// cuDNN's engines for convolutions over one and three spatial axes, on a chip that is only
// described.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {
namespace {

using ::testing::HasSubstr;

// 3 wide everywhere, with the extents of x and y.
struct AxesCase {
  DType type;
  std::vector<int64_t> extents;
  int group = 1;

  ops::ConvGeometry geometry() const {
    const std::vector<int64_t> three(extents.size(), 3), one(extents.size(), 1);
    return {three, one, one, one, group};
  }
  OperandDesc Tensor(int64_t items, int64_t channels, const std::vector<int64_t>& sizes) const {
    std::vector<int64_t> dims = {items, channels};
    dims.insert(dims.end(), sizes.begin(), sizes.end());
    OperandDesc operand;
    operand.shape = Shape(dims);
    operand.dtype = type;
    return operand;
  }
  OperandDesc image() const { return Tensor(16, 64, extents); }
  OperandDesc filter() const { return Tensor(64, 64 / group, geometry().kernel); }
  OperandDesc bias() const {
    OperandDesc operand;
    operand.shape = Shape({64});
    operand.dtype = DType::kFloat;
    return operand;
  }
};

// What cuDNN's candidate for an op answers: "" if it has an engine, or else why it has none.
std::string AnswerOfCudnn(const Op& op, const std::vector<OperandDesc>& inputs,
                          const std::vector<OperandDesc>& outputs) {
  const auto device = DescribeDevice(DeviceKind::kCuda, "H200");
  const KernelCandidate& candidate =
      KernelRegistry::Get().Candidates(DeviceKind::kCuda, op.type())[0];
  EXPECT_THAT(candidate.name, HasSubstr("-cudnn"));
  const KernelOrRefusal answer = candidate.factory({op, inputs, outputs, *device});
  const auto* const refusal = std::get_if<Refusal>(&answer);
  return refusal == nullptr ? "" : refusal->reason;
}

std::string OfForward(const AxesCase& of) {
  ops::Conv conv{of.geometry()};
  conv.epilogue = {{.kind = ops::Pointwise::Kind::kRelu}};
  return AnswerOfCudnn(Op(conv), {of.image(), of.filter(), of.bias()}, {of.image()});
}
std::string OfGradData(const AxesCase& of) {
  return AnswerOfCudnn(Op(ops::ConvGradData{of.geometry()}), {of.image(), of.filter()},
                       {of.image()});
}
std::string OfGradWeights(const AxesCase& of) {
  OperandDesc dw = of.filter();
  dw.dtype = DType::kFloat;
  return AnswerOfCudnn(Op(ops::ConvGradWeights{of.geometry()}), {of.image(), of.image()},
                       {dw, of.bias()});
}

TEST(CudnnAxesTest, OneAndThreeAxesHaveEngines) {
  for (const DType type : {DType::kBFloat16, DType::kFloat16, DType::kFloat}) {
    for (const std::vector<int64_t>& extents :
         {std::vector<int64_t>{1000}, std::vector<int64_t>{8, 14, 14}}) {
      for (const int group : {1, 2}) {
        const AxesCase asked{type, extents, group};
        SCOPED_TRACE(::testing::Message()
                     << Name(type) << " axes " << extents.size() << " groups " << group);
        EXPECT_EQ(OfForward(asked), "");
        EXPECT_EQ(OfGradData(asked), "");
        EXPECT_EQ(OfGradWeights(asked), "");
      }
    }
  }
}

TEST(CudnnAxesTest, FourAxesHaveNone) {
  EXPECT_THAT(OfForward({DType::kFloat, {4, 4, 4, 4}}), HasSubstr("one to three spatial axes"));
}

}  // namespace
}  // namespace caffe::cuda
