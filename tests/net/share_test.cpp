#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/tensor/synced_tensor.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

// Its convolution has enough channels for weights in the kernel's own order, with the normalisation
// folded in.
constexpr char kSharedNet[] = R"(
    state { phase: TEST }
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 16 dim: 9 dim: 9 } } }
    layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'conv'
            convolution_param { num_output: 32 kernel_size: 3 weight_filler { type: 'xavier' } } }
    layer { name: 'bn' type: 'BatchNorm' bottom: 'conv' top: 'conv' }
    layer { name: 'scale' type: 'Scale' bottom: 'conv' top: 'conv' scale_param { bias_term: true } }
    layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'y'
            inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } })";

class ShareTest : public ::testing::Test {
 protected:
  ShareTest() {
    const auto& statistics = net_.layer_params("bn");
    std::fill_n(statistics[1]->mutable_cpu_data<float>(), statistics[1]->count(), 2.f);
    statistics[2]->mutable_cpu_data<float>()[0] = 1;
  }

  static std::vector<float> Run(Net& net, float first) {
    Blob& input = *net.input_blobs()[0];
    std::iota(input.mutable_cpu_data<float>(), input.mutable_cpu_data<float>() + input.count(),
              first);
    const Blob& output = *net.Forward()[0];
    return {output.cpu_data<float>(), output.cpu_data<float>() + output.count()};
  }

  // The addresses of the copies of weights that steps read.
  static std::vector<const void*> CopiesOf(Net& net) {
    Executor& executor = TrainingNet(net).executor();
    std::vector<const void*> places;
    for (const Program::Copy& copy : executor.program().copies) {
      if (!copy.is_read) continue;
      for (const int result : copy.results) places.push_back(executor.bindings()[result]->data());
    }
    return places;
  }

  Net net_{testing::ParseNet(kSharedNet), {.keep_all = false, .with_backward = false, .seed = 1}};
};

TEST_F(ShareTest, NetsComputeTheSameFromTheSameMemory) {
  const std::vector<float> expected = Run(net_, 0.5f);
  const std::unique_ptr<Net> other = net_.Share();
  EXPECT_EQ(Run(*other, 0.5f), expected);
  EXPECT_EQ(other->layer_params("conv")[0]->cpu_data<float>(),
            net_.layer_params("conv")[0]->cpu_data<float>());
  ASSERT_FALSE(CopiesOf(net_).empty());
  EXPECT_EQ(CopiesOf(*other), CopiesOf(net_));
}

TEST_F(ShareTest, ThreadsRunAtATime) {
  constexpr int kThreads = 4, kRuns = 50;
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < kRuns; ++i) expected.push_back(Run(net_, static_cast<float>(i)));
  std::vector<std::unique_ptr<Net>> nets;
  for (int i = 0; i < kThreads; ++i) nets.push_back(net_.Share());
  std::vector<std::thread> threads;
  std::vector<int> wrong(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRuns; ++i)
        wrong[t] += Run(*nets[t], static_cast<float>(i)) != expected[i];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, ::testing::Each(0));
}

// The first net that notices makes its own copies, because others may be reading the old ones.
TEST_F(ShareTest, ChangedWeightsAreSeenByAll) {
  const std::unique_ptr<Net> other = net_.Share();
  const std::vector<float> before = Run(*other, 0.5f);
  for (const auto& blobs : {net_.layer_params("conv"), net_.layer_params("scale")}) {
    float* const weights = blobs[0]->mutable_cpu_data<float>();
    std::transform(weights, weights + blobs[0]->count(), weights, [](float w) { return 2 * w; });
  }
  const std::vector<float> after = Run(net_, 0.5f);
  EXPECT_NE(after, before);
  EXPECT_NE(CopiesOf(*other), CopiesOf(net_));
  EXPECT_EQ(Run(*other, 0.5f), after);
  EXPECT_EQ(Run(net_, 0.5f), after);
}

TEST_F(ShareTest, TakesTheShapesThatInputsHave) {
  net_.input_blobs()[0]->Reshape(Shape{3, 16, 9, 9});
  const std::vector<float> expected = Run(net_, 0);
  const std::unique_ptr<Net> other = net_.Share();
  EXPECT_EQ(other->input_blobs()[0]->shape(), (Shape{3, 16, 9, 9}));
  EXPECT_EQ(Run(*other, 0), expected);
}

TEST_F(ShareTest, OutlivesTheNetThatItWasMadeOf) {
  auto first = std::make_unique<Net>(testing::ParseNet(kSharedNet),
                                     NetOptions{.keep_all = false, .with_backward = false});
  const std::vector<float> expected = Run(*first, 0.5f);
  const std::unique_ptr<Net> other = first->Share();
  first.reset();
  EXPECT_EQ(Run(*other, 0.5f), expected);
}

TEST_F(ShareTest, NetsThatWriteTheirParametersAreRefused) {
  std::string text = kSharedNet;
  const std::string layer = "type: 'BatchNorm' ";
  text.insert(text.find(layer) + layer.size(), "batch_norm_param { use_global_stats: false } ");
  Net net(testing::ParseNet(text));
  EXPECT_THAT(testing::ErrorText<InvalidArgument>([&] { net.Share(); }),
              ::testing::HasSubstr("a forward pass writes 'bn."));
  Net planned(testing::ParseNet(kSharedNet), {.allocate = false});
  EXPECT_THAT(testing::ErrorText<InvalidArgument>([&] { planned.Share(); }),
              ::testing::HasSubstr("is only planned"));
}

TEST_F(ShareTest, NetsThatTrainAreRefused) {
  std::string text = kSharedNet;
  text.replace(text.find("TEST"), 4, "TRAIN");
  Net net(testing::ParseNet(text));
  EXPECT_THAT(testing::ErrorText<InvalidArgument>([&] { net.Share(); }),
              ::testing::HasSubstr("has phase TRAIN"));
}

}  // namespace
}  // namespace caffe
