#include "tests/fuzz/dag/losses.hpp"

#include "tests/fuzz/dag/layer_texts.hpp"

namespace caffe::fuzz {
namespace {

std::string LossWeight(NetWriter& net) {
  return net.random().Chance(0.4) ? StrCat(" loss_weight: ", net.random().Pick({0.5, 2.0, 0.1}))
                                  : "";
}

// A loss on the scores of an InnerProduct, or on the blob itself with one class per channel.
void AddClassLoss(NetWriter& net, KnownBlob bottom) {
  if (bottom.shape.num_axes() < 2) return;
  if (net.random().Chance(0.6)) {
    const std::string scores = net.NewTop();
    if (!net.Add(StrCat("type: 'InnerProduct' inner_product_param { num_output: ",
                        net.random().Pick({2, 3, 5, 10}), Fillers(net), " }"),
                 {bottom}, {scores})) {
      return;
    }
    bottom = net.last();
  }
  const int classes = static_cast<int>(bottom.shape[1]);
  const Shape positions = bottom.shape.With(1, 1);
  const KnownBlob labels = net.NewInput(StrCat("label", classes), positions);
  if (net.random().Chance(0.15) && bottom.shape.count(2) == 1) {
    net.Add("type: 'HingeLoss'" + LossWeight(net), {bottom, labels}, {net.NewName("loss")});
    return;
  }
  const bool is_focal = net.random().Chance(0.15);
  std::string options =
      StrCat("type: '", is_focal ? "FocalLoss" : "SoftmaxWithLoss", "'", LossWeight(net));
  if (net.random().Chance(0.2))
    options += StrCat(" loss_param { normalization: ",
                      net.random().Pick({"FULL", "VALID", "BATCH_SIZE", "NONE"}), " }");
  else if (net.random().Chance(0.1))
    options += " loss_param { ignore_label: 0 }";
  net.Add(options, {bottom, labels}, {net.NewName("loss")});
  if (net.random().Chance(0.15))
    net.Add("type: 'Accuracy'", {bottom, labels}, {net.NewName("index")});
}

void AddRegressionLoss(NetWriter& net, const KnownBlob& bottom) {
  const char* type = net.random().Pick(
      {"EuclideanLoss", "EuclideanLoss", "SigmoidCrossEntropyLoss", "L1Loss", "SmoothL1Loss"});
  const bool is_binary = std::string(type) == "SigmoidCrossEntropyLoss";
  const KnownBlob target = net.NewInput(is_binary ? "binary" : "x", bottom.shape);
  std::string options = StrCat("type: '", type, "'", LossWeight(net));
  if (std::string(type) == "SmoothL1Loss" && net.random().Chance(0.5))
    options += " smooth_l1_loss_param { sigma: 1.5 }";
  if (std::string(type) == "L1Loss" && bottom.shape.num_axes() > 1 && net.random().Chance(0.5))
    options += " l1_loss_param { l2_per_location: true normalize_by_num_entries: true }";
  net.Add(options, {bottom, target}, {net.NewName("loss")});
}

}  // namespace

void AddLoss(NetWriter& net) {
  KnownBlob bottom = net.ChooseAny();
  if (bottom.batch == 0 && bottom.shape[0] == net.items() && net.random().Chance(0.8)) {
    if (net.random().Chance(0.5)) {
      AddClassLoss(net, bottom);
    } else {
      AddRegressionLoss(net, bottom);
    }
    return;
  }
  const std::string weight = LossWeight(net);
  net.Add(StrCat("type: 'Reduction' reduction_param { operation: ",
                 net.random().Pick({"SUMSQ", "MEAN", "SUM", "ASUM"}), " }",
                 weight.empty() ? " loss_weight: 1" : weight),
          {bottom}, {net.NewName("loss")});
}

}  // namespace caffe::fuzz
