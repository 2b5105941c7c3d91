#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/mixup.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

struct MixupUse {
  std::string options;  // of mixup_param, except num_classes
  std::string shape = "dim: 6 dim: 2 dim: 8 dim: 10";
  std::string phase = "TRAIN";
  std::string net = "force_backward: true";
};

std::string MixupNetText(const MixupUse& use) {
  return use.net + " state { phase: " + use.phase +
         " } layer { name: 'in' type: 'Input' top: 'data' top: 'label' input_param { shape { " +
         use.shape +
         " } shape { dim: 6 } } } "
         "layer { name: 'mix' type: 'Mixup' bottom: 'data' bottom: 'label' top: 'mixed' top: "
         "'shares' mixup_param { " +
         (use.options.starts_with("num_classes") ? "" : "num_classes: 6 ") + use.options + " } }";
}

// All values of item n are n + 1, and its class is n.
std::unique_ptr<Net> NetOfItems(const MixupUse& use) {
  auto net = std::make_unique<Net>(testing::ParseNet(MixupNetText(use)), NetOptions{.seed = 1});
  Blob &data = *net->blob_by_name("data"), &label = *net->blob_by_name("label");
  for (int64_t i = 0; i < data.count(); ++i)
    data.mutable_cpu_data<float>()[i] = static_cast<float>(i / (data.count() / 6) + 1);
  for (int i = 0; i < 6; ++i) label.mutable_cpu_data<float>()[i] = static_cast<float>(i);
  return net;
}

std::vector<float> BlobValues(Net& net, const std::string& blob) {
  const Blob& found = *net.blob_by_name(blob);
  const float* values = found.cpu_data<float>();
  return {values, values + found.count()};
}

// For each item: its own share, and the item that has the rest.
struct MixShares {
  std::vector<float> own;
  std::vector<int> partner;
};
MixShares MixSharesOf(const std::vector<float>& rows) {
  MixShares shares;
  for (int n = 0; n < 6; ++n) {
    shares.own.push_back(rows[n * 6 + n]);
    shares.partner.push_back(n);
    float sum = 0;
    for (int c = 0; c < 6; ++c) {
      const float share = rows[n * 6 + c];
      sum += share;
      if (share > 0 && c != n) shares.partner.back() = c;
    }
    EXPECT_FLOAT_EQ(sum, 1);
  }
  return shares;
}

TEST(MixupLayerTest, MixesImagesAndLabelsAlike) {
  const auto net = NetOfItems({"alpha: 1"});
  std::set<float> shares_of_passes;
  std::set<int> partners_of_first;
  for (int pass = 0; pass < 40; ++pass) {
    net->Forward();
    const MixShares shares = MixSharesOf(BlobValues(*net, "shares"));
    const std::vector<float> mixed = BlobValues(*net, "mixed");
    shares_of_passes.insert(shares.own[0]);
    partners_of_first.insert(shares.partner[0]);
    for (int n = 0; n < 6; ++n) {
      EXPECT_EQ(shares.own[n], shares.own[0]);
      EXPECT_NE(shares.partner[n], n);
      EXPECT_EQ(shares.partner[shares.partner[n]], n);
      const float share = shares.own[n];
      const float expected = share * static_cast<float>(n + 1) +
                             (1 - share) * static_cast<float>(shares.partner[n] + 1);
      for (int i = 0; i < 160; ++i) ASSERT_NEAR(mixed[n * 160 + i], expected, 1e-5);
    }
  }
  EXPECT_EQ(shares_of_passes.size(), 40u);
  EXPECT_EQ(partners_of_first, (std::set<int>{1, 3, 5}));
}

TEST(MixupLayerTest, CutMixPutsARectangleOfThePartnerIntoEachItem) {
  const auto net = NetOfItems({"cutmix_prob: 1"});
  int cut = 0;
  for (int pass = 0; pass < 40; ++pass) {
    net->Forward();
    const MixShares shares = MixSharesOf(BlobValues(*net, "shares"));
    const std::vector<float> mixed = BlobValues(*net, "mixed");
    cut += shares.own[0] < 1;
    for (int n = 0; n < 6; ++n) {
      for (int channel = 0; channel < 2; ++channel) {
        int count = 0, top = 8, left = 10, bottom = 0, right = 0;
        for (int i = 0; i < 80; ++i) {
          const float value = mixed[(n * 2 + channel) * 80 + i];
          if (value == static_cast<float>(n + 1)) continue;
          ASSERT_EQ(value, static_cast<float>(shares.partner[n] + 1));
          ++count;
          top = std::min(top, i / 10), bottom = std::max(bottom, i / 10 + 1);
          left = std::min(left, i % 10), right = std::max(right, i % 10 + 1);
        }
        EXPECT_NEAR(count / 80.0, 1 - shares.own[n], 1e-6);
        if (count > 0) {
          EXPECT_EQ(count, (bottom - top) * (right - left));
        }
      }
    }
  }
  EXPECT_GT(cut, 25);
}

// The mean of Beta(a, a) is 1/2 and its variance 1 / (8 a + 4).
TEST(MixupLayerTest, SharesAreFromABetaDistribution) {
  for (const float alpha : {0.05f, 0.2f, 1.0f, 3.0f, 40.0f}) {
    const ops::DrawMix draw{.alpha = alpha, .items = 6};
    constexpr int kPasses = 20000;
    double sum = 0, squares = 0;
    for (uint64_t pass = 0; pass < kPasses; ++pass) {
      const double share = draw.Draw(RandomStream(3, 4), pass).share;
      ASSERT_GE(share, 0);
      ASSERT_LE(share, 1);
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    EXPECT_NEAR(sum / kPasses, 0.5, 0.01) << alpha;
    EXPECT_NEAR(squares / kPasses * (8 * alpha + 4), 1, 0.04) << alpha;
  }
}

TEST(MixupLayerTest, OfAnOddBatchOneItemIsItsOwnPartner) {
  const ops::DrawMix draw{.items = 5};
  for (uint64_t pass = 0; pass < 20; ++pass) {
    const ops::Mix mix = draw.Draw(RandomStream(3, 4), pass);
    int own = 0;
    for (int64_t item = 0; item < 5; ++item) {
      const int64_t partner = mix.Partner(item, 5);
      ASSERT_GE(partner, 0);
      ASSERT_LT(partner, 5);
      EXPECT_EQ(mix.Partner(partner, 5), item);
      own += partner == item;
    }
    EXPECT_EQ(own, 1);
  }
}

TEST(MixupLayerTest, MixesAShareOfTheBatches) {
  const auto net = NetOfItems({"prob: 0.5 alpha: 1"});
  int mixed = 0;
  for (int pass = 0; pass < 100; ++pass) {
    net->Forward();
    mixed += MixSharesOf(BlobValues(*net, "shares")).own[0] < 1;
  }
  EXPECT_NEAR(mixed, 50, 20);
}

TEST(MixupLayerTest, TheSamePassDrawsTheSame) {
  const MixupUse use{"alpha: 1"};
  const auto one = NetOfItems(use), other = NetOfItems(use);
  for (int pass = 0; pass < 3; ++pass) {
    one->Forward(), other->Forward();
    EXPECT_EQ(BlobValues(*one, "mixed"), BlobValues(*other, "mixed"));
    EXPECT_EQ(BlobValues(*one, "shares"), BlobValues(*other, "shares"));
  }
}

TEST(MixupLayerTest, TestsSeeWholeImagesAndLabels) {
  const auto net = NetOfItems({.options = "cutmix_prob: 0.5", .phase = "TEST"});
  net->Forward();
  EXPECT_EQ(BlobValues(*net, "mixed"), BlobValues(*net, "data"));
  const std::vector<float> shares = BlobValues(*net, "shares");
  for (int i = 0; i < 36; ++i) EXPECT_EQ(shares[i], i / 6 == i % 6 ? 1 : 0);
}

// In 16 bits a share still has at least 24 bits of precision.
TEST(MixupLayerTest, SharesStayFloatBesideDataOf16Bits) {
  const auto net = NetOfItems({.options = "alpha: 1", .net = "default_forward_type: BFLOAT16"});
  EXPECT_EQ(net->blob_by_name("shares")->dtype(), DType::kFloat);
  net->Forward();
  const MixShares shares = MixSharesOf(BlobValues(*net, "shares"));
  const float share = shares.own[2];
  EXPECT_NEAR(BlobValues(*net, "mixed")[2 * 160],
              share * 3 + (1 - share) * static_cast<float>(shares.partner[2] + 1), 0.03);
}

TEST(MixupLayerTest, TrainsWithDataMixedInPlace) {
  const auto net = testing::NetOf(
      "state { phase: TRAIN } "
      "layer { name: 'in' type: 'Input' top: 'data' top: 'label' input_param { shape { dim: 4 dim: "
      "3 } shape { dim: 4 } } } "
      "layer { name: 'mix' type: 'Mixup' bottom: 'data' bottom: 'label' top: 'data' top: 'shares' "
      "mixup_param { num_classes: 5 alpha: 1 } } "
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { "
      "num_output: 5 weight_filler { type: 'xavier' } } } "
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'shares' top: 'loss' }");
  for (int i = 0; i < 12; ++i) net->blob_by_name("data")->mutable_cpu_data<float>()[i] = 1;
  float loss = 0;
  net->Forward(&loss);
  net->Backward();
  EXPECT_GT(loss, 0.5);
  EXPECT_GT(net->learnable_params()[0].blob->asum_diff(), 0);
}

TEST(MixupLayerTest, NamesWhatIsWrong) {
  const auto error = [](const MixupUse& use) {
    return ErrorText<InvalidArgument>([&] { testing::NetOf(MixupNetText(use)); });
  };
  EXPECT_THAT(error({"num_classes: 0"}),
              HasSubstr("layer 'mix' (Mixup): mixup_param { num_classes } is 0; give the number"));
  EXPECT_THAT(error({"alpha: 0"}), HasSubstr("mixup_param { alpha } is 0; give a number above 0"));
  EXPECT_THAT(error({"prob: 1.5"}), HasSubstr("mixup_param { prob } is 1.5; give 0 to 1"));
  EXPECT_THAT(error({"cutmix_prob: 0.5", "dim: 6 dim: 4"}),
              HasSubstr("CutMix needs images of shape NxCxHxW; set cutmix_prob: 0"));
  EXPECT_THAT(error({"", "dim: 5 dim: 4"}), HasSubstr("give one label per item"));
  EXPECT_THAT(ErrorText<InvalidArgument>([] {
                testing::NetOf(
                    "state { phase: TRAIN } layer { name: 'in' type: 'Input' top: 'x' top: 't' "
                    "input_param { shape { dim: 1 dim: 3 } shape { dim: 1 } } } layer { name: "
                    "'mix' type: 'Mixup' bottom: 'x' bottom: 't' top: 'y' top: 's' mixup_param { "
                    "num_classes: 2 } }");
              }),
              HasSubstr("a batch of 1 has nothing to mix; raise batch_size"));
  const auto net = NetOfItems({});
  net->blob_by_name("label")->mutable_cpu_data<float>()[4] = 6;
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { net->Forward(); }),
              HasSubstr("label 6 at position 4 of the batch is outside 0..5"));
}

}  // namespace
}  // namespace caffe
