// Layers whose tops' shapes depend on data make the net plan again in the middle of a pass.
#include <gtest/gtest.h>

#include <fstream>

#include "caffe/blob.hpp"
#include "caffe/core/philox.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"

namespace caffe {
namespace {

constexpr char kDataDependentNet[] = R"(
  name: 'selecting'
  layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 6 dim: 4 } } }
  layer { name: 'target' type: 'Input' top: 'target' input_param { shape { dim: 6 dim: 3 } } }
  layer { name: 'selector' type: 'Input' top: 'selector' input_param { shape { dim: 6 } } }
  layer { name: 'before' type: 'InnerProduct' bottom: 'x' top: 'before'
          inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } }
  layer { name: 'noise' type: 'Dropout' bottom: 'before' top: 'before' }
  layer { name: 'filter' type: 'Filter' bottom: 'before' bottom: 'target' bottom: 'selector'
          top: 'chosen' top: 'chosen_target' }
  layer { name: 'after' type: 'InnerProduct' bottom: 'chosen' top: 'after'
          inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }
  layer { name: 'relu' type: 'ReLU' bottom: 'after' top: 'after' }
  layer { name: 'loss' type: 'EuclideanLoss' bottom: 'after' bottom: 'chosen_target' top: 'loss' }
)";

std::unique_ptr<Net> MakeNet(bool keep_all) {
  NetParameter param;
  ParseTextProto(kDataDependentNet, "selecting", &param);
  param.mutable_state()->set_phase(TRAIN);
  return std::make_unique<Net>(param, NetOptions{.keep_all = keep_all, .seed = 5});
}

// Items whose bit is set in `selected` are chosen.
float RunPass(Net& net, uint32_t selected, uint64_t pass) {
  for (const char* name : {"x", "target"}) {
    Blob& blob = *net.blob_by_name(name);
    float* values = blob.mutable_cpu_data<float>();
    const RandomStream random(pass, StreamOf(name));
    for (int64_t i = 0; i < blob.count(); ++i) values[i] = ToUniform(random.Bits(i));
  }
  float* selector = net.blob_by_name("selector")->mutable_cpu_data<float>();
  for (int i = 0; i < 6; ++i) selector[i] = static_cast<float>((selected >> i) & 1u);
  return TrainingNet(net).ForwardBackward({.number = pass});
}

std::vector<float> Gradients(const Net& net) {
  std::vector<float> gradients;
  for (const Net::LearnableParam& param : net.learnable_params()) {
    const float* diff = param.blob->cpu_diff<float>();
    gradients.insert(gradients.end(), diff, diff + param.blob->count());
  }
  return gradients;
}

TEST(DataDependentShapesTest, APlanThatChangedGivesWhatANewNetGives) {
  const std::unique_ptr<Net> reused = MakeNet(false), kept = MakeNet(true);
  uint64_t pass = 0;
  for (const uint32_t selected : {0x3fu, 0x15u, 0x02u, 0x1fu, 0x1fu, 0x20u}) {
    const std::unique_ptr<Net> fresh = MakeNet(true);
    const float want = RunPass(*fresh, selected, pass);
    for (Net* net : {reused.get(), kept.get()}) {
      EXPECT_EQ(RunPass(*net, selected, pass), want) << selected;
      EXPECT_EQ(Gradients(*net), Gradients(*fresh)) << selected;
    }
    const Shape chosen{__builtin_popcount(selected), 5};
    EXPECT_EQ(kept->blob_by_name("chosen")->shape(), chosen);
    ++pass;
  }
}

TEST(DataDependentShapesTest, NothingSelectedTrainsNothing) {
  const std::unique_ptr<Net> net = MakeNet(false);
  EXPECT_GT(RunPass(*net, 0x7, 0), 0);
  EXPECT_EQ(RunPass(*net, 0, 1), 0);
  for (const float gradient : Gradients(*net)) EXPECT_EQ(gradient, 0);
  EXPECT_GT(RunPass(*net, 0x7, 2), 0);
}

}  // namespace
}  // namespace caffe
