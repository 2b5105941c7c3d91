// Gradients of normalizations.
#include "tests/layers/gradient_cases.hpp"

namespace caffe {
namespace {

void NormalizationGradients(GradientCaseList& add) {
  add(Layer1("LRNAcross", "2x7x2x3", "LRN",
             "lrn_param { local_size: 5 alpha: 0.8 beta: 0.75 k: 2 }"));
  add(Layer1("LRNWithin", "2x3x5x4", "LRN",
             "lrn_param { local_size: 3 alpha: 0.8 beta: 0.75 norm_region: WITHIN_CHANNEL }"));
  add(Layer1("BatchNormTrain", "3x2x3x2", "BatchNorm", "batch_norm_param { eps: 0.01 }"))
      .tolerance = 1e-5;
  add(Layer1("BatchNorm2D", "6x3", "BatchNorm", "batch_norm_param { eps: 0.01 }")).tolerance = 1e-5;
  add(Layer1("BatchNormGlobal", "3x2x3x2", "BatchNorm",
             "batch_norm_param { use_global_stats: true eps: 0.01 }"))
      .is_test_phase = true;
  add(Layer1("BatchNormScaleBias", "3x2x3x2", "BatchNorm",
             "batch_norm_param { scale_bias: true eps: 0.01 }"))
      .tolerance = 1e-5;
  const std::string bn = "bn_param { eps: 0.01 ";
  const std::string segnet = bn + "scale_filler { value: 0.7 } shift_filler { value: 0.1 } ";
  add(Layer1("BN", "3x2x3x2", "BN", bn + "}")).tolerance = 1e-5;
  add(Layer1("BNFrozen", "3x2x3x2", "BN", bn + "frozen: true slope_filler { value: 0.7 } }"));
  add(Layer1("BNSegNet", "3x2x3x2", "BN", segnet + "}")).tolerance = 1e-5;
  add({"BNSegNetStatistics", "3x2x3x2",
       "layer { name: 'l' type: 'BN' bottom: 'x0' top: 'y' top: 'mean' top: 'variance' " + segnet +
           "} } layer { name: 's' type: 'Silence' bottom: 'mean' bottom: 'variance' }"})
      .tolerance = 1e-5;
  add(Layer1("BNSegNetInference", "3x2x3x2", "BN", segnet + "bn_mode: INFERENCE }"));
  add(Layer1("SyncBN", "3x2x3x2", "SyncBN", bn + "}")).tolerance = 1e-5;
  for (const int axis : {-1, 1}) {
    add(Layer1(StrCat("LayerNorm", axis == 1 ? "Items" : ""), "3x2x4", "LayerNorm",
               StrCat("layer_norm_param { axis: ", axis, " eps: 0.01 scale_", kFiller, "}")))
        .tolerance = 1e-5;
  }
  add(Layer1("LayerNormNotAffine", "3x5", "LayerNorm", "layer_norm_param { affine: false }"))
      .tolerance = 1e-5;
  for (const int axis : {-1, 1}) {
    add(Layer1(StrCat("RMSNorm", axis == 1 ? "Items" : ""), "3x2x4", "RMSNorm",
               StrCat("rms_norm_param { axis: ", axis, " eps: 0.01 scale_", kFiller, "}")));
  }
  add(Layer1("RMSNormNotAffine", "3x5", "RMSNorm", "rms_norm_param { affine: false }"));
  add(Layer1("MVN", "2x3x4x3", "MVN", ""));
  add(Layer1("MVNAcross", "2x3x2x3", "MVN", "mvn_param { across_channels: true }"));
  add(Layer1("MVNMeanOnly", "2x3x4x3", "MVN", "mvn_param { normalize_variance: false }"));
  add(Layer1("Normalize", "2x3x2x3", "Normalize", ""));
  add(Layer1("NormalizePerPosition", "2x3x2x3", "Normalize",
             "norm_param { across_spatial: false channel_shared: false scale_filler { value: 20 } "
             "}"))
      .tolerance = 1e-5;
  add(Layer1(
      "GroupNorm", "2x4x3x2", "GroupNorm",
      StrCat("group_norm_param { num_groups: 2 scale_filler { type: 'gaussian' std: 1 } }")));
  add(Layer1("GroupNormPlain", "2x4x3", "GroupNorm",
             "group_norm_param { num_groups: 4 affine: false eps: 0.1 }"));
  add(Layer1("InstanceNorm", "2x3x4x2", "InstanceNorm", ""));
}

const GradientCases normalization_gradients("normalization", NormalizationGradients);

}  // namespace
}  // namespace caffe
