// Gradients of losses.
#include "tests/layers/gradient_cases.hpp"

namespace caffe {
namespace {

void LossesGradients(GradientCaseList& add) {
  add({"SoftmaxWithLoss", "4x3x2",
       "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'x0' bottom: 'c0' top: 'y' }", -1, 1, 0,
       "4x2"});
  add({"SoftmaxWithLossIgnore", "6x3",
       "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'x0' bottom: 'c0' top: 'y' loss_weight: "
       "2 "
       "loss_param { ignore_label: 1 normalization: FULL } }",
       -1, 1, 0, "6"});
  add({"SoftmaxWithLossSoft", "3x4",
       "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'x0' bottom: 'c0' top: 'y' loss_weight: "
       "2 loss_param { normalization: FULL weight_by_label_freqs: true class_weighting: [0.5, 1, "
       "3, 2] } }",
       -1, 1, 0, "3x4"})
      .constants = {0.7, 0.3, 0, 0, 0.1, 0.2, 0.3, 0.4, 0, 0, 1, 0.5};
  const auto mixup = [&](const std::string& name, const std::string& options, bool is_test) {
    GradientCase& test =
        add({"Mixup" + name, "4x2x3x5",
             "layer { name: 'l' type: 'Mixup' bottom: 'x0' bottom: 'c0' top: 'y' top: 's' "
             "mixup_param { num_classes: 3 " +
                 options + " } }",
             -1, 1, 0, "4"});
    test.is_test_phase = is_test;
  };
  mixup("", "alpha: 1", false);
  mixup("Cut", "cutmix_prob: 1", false);
  mixup("Test", "", true);
  add({"EuclideanLoss", "4x3 4x3",
       "layer { name: 'l' type: 'EuclideanLoss' bottom: 'x0' bottom: 'x1' top: 'y' }"});
  add.Loss("HingeLoss", "HingeLoss", "4x3", "4", "");
  add.Loss("HingeLossL2", "HingeLoss", "4x3", "4", "hinge_loss_param { norm: L2 }");
  add.Loss("MultinomialLogisticLoss", "MultinomialLogisticLoss", "4x3", "4", "").low = 0.1;
  add.Loss("SigmoidCrossEntropyLoss", "SigmoidCrossEntropyLoss", "4x3", "4x3",
           "loss_param { ignore_label: 2 normalization: VALID }");
  add.Loss("SigmoidCrossEntropyLossWeighted", "SigmoidCrossEntropyLoss", "4x3", "4x3",
           "loss_param { ignore_label: 2 positive_weight: 3.5 }");
  add.Loss("KLDivLoss", "KLDivLoss", "4x3", "4x3", "").classes = 2;
  add.Loss("KLDivLossOfLogarithms", "KLDivLoss", "4x3", "4x3",
           "kl_div_loss_param { log_target: true } loss_param { normalization: NONE }")
      .constants = {-0.5, -2, -1, -3};
  for (const char* options : {"smooth: 0.5", "squares: true"}) {
    GradientCase& test = add.Loss(StrCat("DiceLoss", options[1]), "DiceLoss", "2x3x4", "2x3x4",
                                  StrCat("dice_loss_param { ", options, " }"));
    test.low = 0.1;
    test.classes = 2;
  }
  add.Loss("L1Loss", "L1Loss", "4x3 4x3", "", "").is_distinct = true;
  add.Loss("SmoothL1Loss", "SmoothL1Loss", "4x3 4x3", "", "").high = 3;
  add.Loss("SmoothL1LossWeighted", "SmoothL1Loss", "4x3 4x3", "4x3", "").classes = 2;
  add.Loss("SmoothL1LossSigma", "SmoothL1Loss", "4x3 4x3", "4x3 4x3",
           "smooth_l1_loss_param { sigma: 1.5 }");
  const std::string pre_fixed = "loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 1.5 }";
  add.Loss("SmoothL1LossOHEM", "SmoothL1LossOHEM", "2x3x1x2 2x3x1x2", "", pre_fixed).high = 3;
  add.Loss("SoftmaxWithLossOHEM", "SoftmaxWithLossOHEM", "4x3x2", "4x2", pre_fixed);
  add.Loss(
      "SoftmaxWithLossWeighted", "SoftmaxWithLoss", "4x3x2", "4x2",
      "loss_param { ignore_label: 1 weight_by_label_freqs: true class_weighting: [0.5, 1, 3] }");
  for (const std::string type : {"FocalLoss", "SoftmaxWithFocalLoss"}) {
    add.Loss(type, type, "4x3x2", "4x2",
             "focal_loss_param { gamma: 1.5 } loss_param { ignore_label: 2 }");
    add.Loss(type + "Linear", type, "4x2x3", "4x2",
             "focal_loss_param { type: LINEAR gamma: 1.5 beta: 0.5 } softmax_param { axis: 2 }");
  }
  add.Loss("TripletLoss", "TripletLoss", "4x3 4x3 4x3", "", "triplet_loss_param { margin: 0.7 }");
  add.Loss("CenterLoss", "CenterLoss", "4x5", "4",
           "center_loss_param { num_output: 3 center_filler { type: 'gaussian' } "
           "}");
  add.Loss("L1LossOfOne", "L1Loss", "2x3x2x2", "", "").gap = 0.1;
  add.Loss("L1LossPerLocation", "L1Loss", "2x3x2x2 2x3x2x2", "",
           "l1_loss_param { l2_per_location: true normalize_by_num_entries: true plateau: 0.3 }");
  // Two sequences of five steps, three classes.
  {
    GradientCase& test = add.Loss("CTCLoss", "CTCLoss", "5x2x3", "5x2 2x2",
                                  "ctc_loss_param { output_delay: 1 blank_index: -1 }");
    test.constants = {0, 0, 1, 1, 1, 1, 1, 1, 1, 0};
    test.classes = 2;
  }
  add.Loss("CTCLossNoMerging", "CTCLoss", "5x2x3", "2x2",
           "ctc_loss_param { ctc_merge_repeated: false }")
      .classes = 2;
  add.Loss("WarpCTC", "WarpCTC", "5x2x3", "2x4", "");
  add.Loss("CtcLoss", "CtcLoss", "5x2x3", "2x3", "ctc_loss_param { blank_label: 1 }");
  add.Loss("WarpCTCLoss", "WarpCTCLoss", "5x2x3", "2 2 2x2", "ctc_loss_param { blank_index: 2 }")
      .constants = {5, 3};
  add.Loss("ContrastiveLoss", "ContrastiveLoss", "4x3 4x3", "4",
           "contrastive_loss_param { margin: 2 }")
      .tolerance = 1e-3;  // the formula guards the distance with 1e-4
  add.Loss("ContrastiveLossLegacy", "ContrastiveLoss", "4x3 4x3", "4",
           "contrastive_loss_param { margin: 4 legacy_version: true }");
  add.Loss("InfogainLoss", "InfogainLoss", "4x3", "4 3x3", "");
}

const GradientCases losses_gradients("losses", LossesGradients);

}  // namespace
}  // namespace caffe
