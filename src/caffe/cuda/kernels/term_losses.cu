#include "caffe/cuda/kernels/each_element.cuh"
#include "caffe/cuda/kernels/sum_loss.cuh"
#include "caffe/ops/term_losses.hpp"

namespace caffe::cuda {
namespace {

struct AddTerm {
  Numbers terms;

  __device__ void operator()(int64_t, int64_t i, Sums<1, double>& sums) const {
    sums.values[0] += terms.Get<double>(i);
  }
};

struct StoreQuotient {
  double coefficient;
  Numbers divisor, loss;

  __device__ void operator()(int64_t, const Sums<1, double>& sums) const {
    const double by = divisor.GetOr<double>(0, 1);
    loss.Set(0, coefficient * sums.values[0] / (by == 0 ? 1 : by));
  }
};

KernelOrRefusal MakeSumOfTerms(const ops::SumOfTerms& op, const KernelRequest& request) {
  const Covered all = Everything(request.inputs[0].count());
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  SumCovered<1, double>(
                      ctx, all, ctx.workspace, AddTerm{InputNumbers(ctx, 0)},
                      StoreQuotient{op.coefficient, InputNumbers(ctx, 1), OutputNumbers(ctx, 0)});
                },
                SumWorkspace<1, double>(all)};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SumOfTerms, "sum-of-terms",
                              KernelRank::kReference, MakeSumOfTerms);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SavedGrad, EachElement<ops::SavedGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::TripletTerms, EachElement<ops::TripletTerms>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::TripletGrad, EachElement<ops::TripletGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::CenterTerms, EachElement<ops::CenterTerms>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::CenterGrad, EachElement<ops::CenterGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::CenterStep, EachElement<ops::CenterStep>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::KLDivTerms, EachElement<ops::KLDivTerms>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::KLDivGrad, EachElement<ops::KLDivGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::DiceTerms, EachElement<ops::DiceTerms>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::DiceGrad, EachElement<ops::DiceGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::FlowTerms, EachElement<ops::FlowTerms>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::FlowNumbers, EachElement<ops::FlowNumbers>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::FlowGrad, EachElement<ops::FlowGrad>);

}  // namespace
}  // namespace caffe::cuda
