// While a device loads code or makes a recording it must not reduce, so an executor says whether
// its runs still do either.
#include <gtest/gtest.h>

#include "caffe/common.hpp"
#include "caffe/net/training_net.hpp"
#include "tests/support/classifier_net.hpp"

namespace caffe {
namespace {

class CudaSettledRunsTest : public ::testing::Test {
 protected:
  void SetUp() override { Caffe::set_mode(Caffe::GPU); }
  void TearDown() override { Caffe::set_mode(Caffe::CPU); }

  // Runs a pass. Returns whether runs like this one are settled afterwards.
  bool Settles(Net& net, TrainingPass pass) {
    pass.number = number_++;
    TrainingNet(net).ForwardBackward(pass);
    return TrainingNet(net).executor().is_settled();
  }

  const Executor::GradientListener listener_{
      .on_final = [](const SyncedTensor&) {},
      .is_awaited = [](const SyncedTensor&) { return true; }};
  uint64_t number_ = 0;
};

TEST_F(CudaSettledRunsTest, TheThirdRunOnlyLaunches) {
  Net net(testing::ClassifierNet(
              "layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv' "
              "convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: 'xavier' } } "
              "} ",
              "conv"),
          {.keep_all = false, .seed = 1});
  TrainingPass pass{.listener = &listener_};
  EXPECT_FALSE(Settles(net, pass)) << "it loads code";
  EXPECT_FALSE(Settles(net, pass)) << "it records";
  EXPECT_TRUE(Settles(net, pass));
  EXPECT_TRUE(Settles(net, pass));

  const std::shared_ptr<Device> device = TrainingNet(net).device();
  const std::shared_ptr<void> scale = device->Allocate(sizeof(double));
  const double one = 1;
  device->CopyFromHost(scale.get(), &one, sizeof one);
  pass.loss_scale = static_cast<const double*>(scale.get());
  EXPECT_FALSE(Settles(net, pass)) << "recordings of another loss scale are of no use";
  EXPECT_FALSE(Settles(net, pass));
  EXPECT_TRUE(Settles(net, pass));
}

}  // namespace
}  // namespace caffe
