#include "caffe/ops/term_losses.hpp"

#include "caffe/cpu/kernels/each_element.hpp"
#include "caffe/cpu/kernels/labels.hpp"

namespace caffe::cpu {
namespace {

void SumOfTerms(const ops::SumOfTerms& op, const KernelContext& ctx) {
  double sum = 0;
  for (int64_t i = 0; i < ctx.input(0).count(); ++i) sum += ElementOf(ctx.input(0), i);
  const double divisor = ctx.has_input(1) ? ElementOf(ctx.input(1), 0) : 1;
  SetElement(ctx.output(0), 0, op.coefficient * sum / (divisor == 0 ? 1 : divisor));
}

void CenterTerms(const ops::CenterTerms& op, const KernelContext& ctx) {
  for (int64_t row = 0; row < ctx.output(0).count(); ++row) {
    RequireLabel(LabelAt(ctx.input(1), row), op.classes, row);
  }
  EachElement(op, ctx);
}

void SavedGrad(const ops::SavedGrad&, const KernelContext& ctx) {
  const double dloss = ElementOf(ctx.input(1), 0);
  const TensorView &g = ctx.input(0), &dx = ctx.output(0);
  const bool adds = ctx.accumulates(0);
  VisitFloat(g.dtype, [&]<typename From>(TypeTag<From>) {
    VisitFloat(dx.dtype, [&]<typename To>(TypeTag<To>) {
      const From* from = g.as<const From>();
      To* to = dx.as<To>();
      ParallelFor(dx.count(), kPointwiseGrain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const double value = dloss * static_cast<double>(from[i]);
          to[i] = To(adds ? static_cast<double>(to[i]) + value : value);
        }
      });
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SumOfTerms, SumOfTerms);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SavedGrad, SavedGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::TripletTerms, EachElement<ops::TripletTerms>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::TripletGrad, EachElement<ops::TripletGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::CenterTerms, CenterTerms);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::CenterGrad, EachElement<ops::CenterGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::CenterStep, EachElement<ops::CenterStep>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::KLDivTerms, EachElement<ops::KLDivTerms>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::KLDivGrad, EachElement<ops::KLDivGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::DiceTerms, EachElement<ops::DiceTerms>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::DiceGrad, EachElement<ops::DiceGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::FlowTerms, EachElement<ops::FlowTerms>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::FlowNumbers, EachElement<ops::FlowNumbers>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::FlowGrad, EachElement<ops::FlowGrad>);

}  // namespace
}  // namespace caffe::cpu
