// The number of kernels that batch normalisation launches: each takes some microseconds, even for
// few numbers.
#include <gtest/gtest.h>

#include "caffe/ops/kernel.hpp"
#include "caffe/ops/norm.hpp"
#include "tests/support/fused_regions.hpp"
#include "work_queue.hpp"

namespace caffe {
namespace {

TensorDesc Channels() {
  TensorDesc desc;
  desc.shape = Shape({16});
  desc.dtype = DType::kFloat;
  return desc;
}

TensorDesc Images() {
  TensorDesc desc;
  desc.shape = Shape({32, 16, 12, 12});
  desc.dtype = DType::kFloat16;
  desc.layout = Layout::kChannelsLast;
  return desc;
}

// The launches of the first kernel that supports the op.
int64_t LaunchesOf(const Op& op, const std::vector<TensorDesc>& inputs,
                   const std::vector<TensorDesc>& outputs) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  device->MakeCurrent();
  std::vector<std::shared_ptr<void>> memory;
  std::vector<OperandDesc> asked_inputs, asked_outputs;
  std::vector<TensorView> views_in, views_out;
  const auto add = [&](const std::vector<TensorDesc>& descs, std::vector<OperandDesc>* asked,
                       std::vector<TensorView>* views) {
    for (const TensorDesc& desc : descs) {
      static_cast<TensorDesc&>(asked->emplace_back()) = desc;
      memory.push_back(device->Allocate(desc.bytes()));
      static_cast<TensorDesc&>(views->emplace_back()) = desc;
      views->back().data = memory.back().get();
    }
  };
  add(inputs, &asked_inputs, &views_in);
  add(outputs, &asked_outputs, &views_out);
  const KernelCandidate& first = testing::FirstFor(DeviceKind::kCuda, op);
  const Kernel kernel = std::get<Kernel>(first.factory({op, asked_inputs, asked_outputs, *device}));
  memory.push_back(device->Allocate(kernel.workspace_bytes));
  KernelContext ctx;
  ctx.inputs = views_in;
  ctx.outputs = views_out;
  ctx.workspace = memory.back().get();
  ctx.stream = &device->compute_stream();
  const int64_t before = cuda_on_host::LaunchesSoFar().singly;
  kernel.run(ctx);
  const int64_t launches = cuda_on_host::LaunchesSoFar().singly - before;
  device->Synchronize();
  return launches;
}

TEST(CudaNormLaunchesTest, AreFourForALayerAndStep) {
  const TensorDesc x = Images(), c = Channels();
  TensorDesc one = c;
  one.shape = Shape({1});
  const ops::Epilogue relu = {{.kind = ops::Pointwise::Kind::kRelu}};
  EXPECT_EQ(LaunchesOf(ops::BatchNorm{1e-5, relu, ops::UpdateRunningStatistics{}}, {x, c, c},
                       {x, c, c, c, c, one}),
            2);
  EXPECT_EQ(LaunchesOf(testing::BatchNormReluGrad(1e-5, x.shape), {x, c, c, x, c, c}, {x, c, c}),
            2);
  EXPECT_EQ(LaunchesOf(ops::BatchNormGrad{}, {x, c, c, x, c}, {x, c, c}), 2);
}

// After a convolution that has summed the statistics.
TEST(CudaNormLaunchesTest, OneNormalisesByGivenStatistics) {
  using Given = ops::BatchNormInference;
  const TensorDesc x = Images(), c = Channels();
  const ops::Epilogue relu = {{.kind = ops::Pointwise::Kind::kRelu}};
  EXPECT_EQ(LaunchesOf(Given{1e-5, relu}, {x, c, c}, {x}), 1);
}

}  // namespace
}  // namespace caffe
