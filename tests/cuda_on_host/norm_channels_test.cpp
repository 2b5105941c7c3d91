// The outputs of cuDNN's normalisations, converted to the form that our ops use.
#include "caffe/cuda/norm_channels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace caffe::cuda {
namespace {

using ::testing::ElementsAre;

TensorView View(std::vector<float>* values) {
  TensorView view;
  view.shape = Shape({static_cast<int64_t>(values->size())});
  view.dtype = DType::kFloat;
  view.data = values->data();
  return view;
}

class CudaNormChannelsTest : public ::testing::Test {
 protected:
  void SetUp() override { device_->MakeCurrent(); }

  template <typename Fn>
  void Run(std::vector<TensorView> inputs, std::vector<TensorView> outputs, OperandSet accumulated,
           const Fn& fn) {
    KernelContext ctx;
    ctx.inputs = inputs;
    ctx.outputs = outputs;
    ctx.stream = &device_->compute_stream();
    ctx.accumulated = accumulated;
    fn(ctx);
    device_->Synchronize();
  }

  const std::shared_ptr<Device> device_ = MakeDevice(DeviceKind::kCuda);
};

TEST_F(CudaNormChannelsTest, VariancesComeBackFromInverseDeviations) {
  std::vector<float> y(1), mean = {1, 2, 3}, wanted = {4, 0.25f, 0}, inverse(3), variance(3);
  std::vector<float> running_mean = {10, 10, 10}, running_variance = {10, 10, 10};
  const double eps = 1e-5;
  Run({}, {}, {}, [&](const KernelContext& ctx) {
    InverseDeviations(ctx, View(&wanted), eps, inverse.data());
  });
  EXPECT_FLOAT_EQ(inverse[0], static_cast<float>(1 / std::sqrt(4 + eps)));
  const ops::BatchNorm op{
      eps,
      {},
      ops::UpdateRunningStatistics{.fraction = 0.5, .decaying_sums = false, .copies_first = false}};
  Run({}, {View(&y), View(&mean), View(&variance), View(&running_mean), View(&running_variance)},
      {}, [&](const KernelContext& ctx) { StoreVariances(op, ctx, inverse.data()); });
  for (size_t c = 0; c < wanted.size(); ++c) EXPECT_NEAR(variance[c], wanted[c], 1e-6) << c;
  EXPECT_THAT(running_mean, ElementsAre(5.5f, 6, 6.5f));
  EXPECT_NEAR(running_variance[0], 7, 1e-6);
}

TEST_F(CudaNormChannelsTest, GradientsOfParametersAreStoredOrAdded) {
  std::vector<float> mean(2), dx(1), dgamma = {1, 2}, dbeta = {3, 4};
  const std::vector<float> from_gamma = {10, 20}, from_beta = {30, 40};
  const auto run = [&](OperandSet accumulated) {
    Run({View(&dx), View(&mean)}, {View(&dx), View(&dgamma), View(&dbeta)}, accumulated,
        [&](const KernelContext& ctx) {
          StoreParameterGradients(ctx, from_gamma.data(), from_beta.data());
        });
  };
  run({ops::BatchNormGrad::kDbeta});
  EXPECT_THAT(dgamma, ElementsAre(10, 20));
  EXPECT_THAT(dbeta, ElementsAre(33, 44));
}

}  // namespace
}  // namespace caffe::cuda
