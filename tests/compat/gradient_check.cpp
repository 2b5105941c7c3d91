// Checks the gradients of layers written for Caffe, and of some of Cortado's, with GradientChecker.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "caffe/caffe.hpp"
#include "caffe/test/test_gradient_check_util.hpp"

namespace caffe {

template <typename Dtype>
class GradientTest : public ::testing::Test {
 protected:
  GradientTest() : bottom_(2, 3, 2, 2), other_(2, 3, 2, 2), label_(2, 1, 1, 1) {
    Caffe::set_random_seed(1701);
    FillerParameter filler_param;
    filler_param.set_std(1);
    GaussianFiller<Dtype> filler(filler_param);
    filler.Fill(&bottom_);
    filler.Fill(&other_);
    label_.mutable_cpu_data()[0] = 2;
    param_.set_phase(TRAIN);
  }

  shared_ptr<Layer<Dtype> > Make(const string& type) {
    param_.set_type(type);
    return LayerRegistry<Dtype>::CreateLayer(param_);
  }

  void Check(const string& type, Dtype kink = 0, Dtype kink_range = -1) {
    GradientChecker<Dtype> checker(Dtype(1e-2), Dtype(1e-2), 1701, kink, kink_range);
    checker.CheckGradientExhaustive(Make(type).get(), {&bottom_}, {&top_});
  }

  void CheckLoss(const string& type, Blob<Dtype>* targets) {
    GradientChecker<Dtype> checker(Dtype(1e-2), Dtype(1e-2));
    checker.CheckGradientExhaustive(Make(type).get(), {&bottom_, targets}, {&top_}, 0);
  }

  Blob<Dtype> bottom_, other_, label_, top_;
  LayerParameter param_;
};

typedef ::testing::Types<float, double> Types;
TYPED_TEST_SUITE(GradientTest, Types);

TYPED_TEST(GradientTest, SoftSign) {
  GradientChecker<TypeParam> checker(TypeParam(1e-2), TypeParam(1e-2));
  checker.CheckGradientEltwise(this->Make("SoftSign").get(), {&this->bottom_}, {&this->top_});
}
TYPED_TEST(GradientTest, HardClamp) {
  caffe_scal(this->bottom_.count(), TypeParam(0.3), this->bottom_.mutable_cpu_data());
  this->Check("HardClamp");
}
TYPED_TEST(GradientTest, ChannelGain) {
  this->Check("ChannelGain");
}
TYPED_TEST(GradientTest, Polynomial) {
  this->param_.mutable_python_param()->set_param_str("1 -2 0.5");
  this->Check("Polynomial");
}
TYPED_TEST(GradientTest, CoinMask) {
  this->Check("CoinMask");
}
TYPED_TEST(GradientTest, LogCoshLoss) {
  this->CheckLoss("LogCoshLoss", &this->other_);
}
TYPED_TEST(GradientTest, TemperedLoss) {
  this->bottom_.Reshape(2, 12, 1, 1);
  this->CheckLoss("TemperedLoss", &this->label_);
}
TYPED_TEST(GradientTest, PlainConvolution) {
  ConvolutionParameter* conv = this->param_.mutable_convolution_param();
  conv->set_num_output(2);
  conv->add_kernel_size(2);
  conv->add_pad(1);
  conv->mutable_weight_filler()->set_type("gaussian");
  this->Check("PlainConvolution");
}

// Cortado's own layers, as objects of Caffe's API.
TYPED_TEST(GradientTest, InnerProduct) {
  this->param_.mutable_inner_product_param()->set_num_output(3);
  this->param_.mutable_inner_product_param()->mutable_weight_filler()->set_type("xavier");
  this->Check("InnerProduct");
}
TYPED_TEST(GradientTest, ReLU) {
  this->Check("ReLU", 0, 0.02);
}
TYPED_TEST(GradientTest, EuclideanLoss) {
  this->CheckLoss("EuclideanLoss", &this->other_);
}
TYPED_TEST(GradientTest, Dropout) {
  this->Check("Dropout");
}

TYPED_TEST(GradientTest, PlainConvolutionIsConvolution) {
  ConvolutionParameter* conv = this->param_.mutable_convolution_param();
  conv->set_num_output(4);
  conv->add_kernel_size(2);
  conv->add_pad(1);
  conv->add_stride(2);
  conv->mutable_weight_filler()->set_type("gaussian");
  const shared_ptr<Layer<TypeParam> > ours = this->Make("Convolution");
  const vector<Blob<TypeParam>*> bottoms(1, &this->bottom_), tops(1, &this->top_);
  ours->SetUp(bottoms, tops);
  ours->ToProto(&this->param_);
  ours->Forward(bottoms, tops);
  Blob<TypeParam> expected;
  expected.CopyFrom(this->top_, false, true);
  const shared_ptr<Layer<TypeParam> > plain = this->Make("PlainConvolution");
  plain->SetUp(bottoms, tops);
  plain->Forward(bottoms, tops);
  ASSERT_EQ(this->top_.shape(), expected.shape());
  for (int i = 0; i < expected.count(); ++i) {
    EXPECT_NEAR(this->top_.cpu_data()[i], expected.cpu_data()[i], 1e-5);
  }
}

// A net's layer is the object that the net runs, and its blobs are the net's.
TYPED_TEST(GradientTest, LayerOfANet) {
  NetParameter param;
  param.set_force_backward(true);
  LayerParameter* const input = param.add_layer();
  input->set_type("Input");
  input->set_name("in");
  input->add_top("x");
  BlobShape* const shape = input->mutable_input_param()->add_shape();
  shape->add_dim(2);
  shape->add_dim(3);
  LayerParameter* const gain = param.add_layer();
  gain->set_type("ChannelGain");
  gain->set_name("gain");
  gain->add_bottom("x");
  gain->add_top("y");
  Net<TypeParam> net(param);
  EXPECT_STREQ(net.layers()[1]->type(), "ChannelGain");
  ASSERT_EQ(net.layers()[1]->blobs().size(), 2u);
  EXPECT_EQ(net.params()[0], net.layers()[1]->blobs()[0]);
  const TypeParam value = TypeParam(1) + TypeParam(1e-12);
  for (int i = 0; i < 3; ++i) net.params()[0]->mutable_cpu_data()[i] = value * (i + 1);
  caffe_set(6, TypeParam(1), net.blob_by_name("x")->mutable_cpu_data());
  net.Forward();
  EXPECT_EQ(net.blob_by_name("y")->cpu_data()[4], value * 2);
  for (int pass = 1; pass < 3; ++pass) {
    caffe_set(6, TypeParam(1), net.blob_by_name("y")->mutable_cpu_diff());
    net.Backward();
    EXPECT_EQ(net.params()[0]->cpu_diff()[1], 2 * pass);  // two items, accumulated
    EXPECT_EQ(net.blob_by_name("x")->cpu_diff()[5], value * 3);
  }
  net.layers()[1]->Forward(net.bottom_vecs()[1], net.top_vecs()[1]);
  EXPECT_EQ(net.blob_by_name("y")->cpu_data()[5], value * 3);
  net.blob_by_name("x")->Reshape(std::vector<int>{1, 3});
  net.Forward();
  EXPECT_EQ(net.blob_by_name("y")->shape_string(), "1 3 (3)");
}

}  // namespace caffe

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  caffe::GlobalInit(&argc, &argv);
  return RUN_ALL_TESTS();
}
