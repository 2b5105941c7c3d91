#include "caffe/ops/yolo_loss.hpp"

#include "caffe/cpu/kernels/each_element.hpp"
#include "caffe/error.hpp"

namespace caffe::cpu {
namespace {

void YoloMatches(const ops::YoloMatches& op, const KernelContext& ctx) {
  const StoredOperand<double> labels{&ctx.input(1)};
  ops::YoloObject object;
  for (int64_t item = 0; item < ctx.input(0).shape[0]; ++item) {
    for (int row = 0; op.NextObject(labels, item, &row, &object);) {
      Require(object.label >= 0 && object.label < op.classes, "the object in row ", row - 1,
              " of the ground truth of item ", item, " has class ", object.label,
              " counted from 0; there are ", op.classes, " classes");
    }
  }
  EachElement(op, ctx);
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::YoloMatches, YoloMatches);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::YoloTerms, EachElement<ops::YoloTerms>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::YoloGrad, EachElement<ops::YoloGrad>);

}  // namespace
}  // namespace caffe::cpu
