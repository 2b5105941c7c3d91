// Gradients of layers and losses of boxes.
#include "tests/layers/gradient_cases.hpp"

namespace caffe {
namespace {

void BoxesGradients(GradientCaseList& add) {
  const auto regions = [&](const std::string& type, const std::string& options, int channels) {
    GradientCase& test =
        add({type, StrCat("2x", channels, "x6x7"),
             StrCat("layer { name: 'l' type: '", type,
                    "' bottom: 'x0' bottom: 'c0' top: 'y' propagate_down: true propagate_down: "
                    "false ",
                    options, " }"),
             -1, 1, 0, "4x5"});
    test.constants = {0, 0, 0, 55, 47, 1, 9, 5, 30, 42, 1, -9, -20, 20, 13, 0, 30, 30, 80, 70};
    return &test;
  };
  regions("ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.125 }", 2)
      ->is_distinct = true;
  regions("ROIAlign", "roi_align_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.125 }", 2);
  regions("PSROIPooling",
          "psroi_pooling_param { output_dim: 2 group_size: 2 spatial_scale: 0.125 }", 8);
  // Objects are constants: two in one box, one for another anchor, and one without a box.
  const auto yolo = [&](const std::string& name, const std::string& type,
                        const std::string& options) {
    add.Loss(type + name, type, "2x16x2x3", "2x20",
             StrCat(options, " propagate_down: true propagate_down: false"))
        .constants = {2,   0.4, 0.3, 0.3, 0.5, 0, 0.45, 0.4, 0.3, 0.4, 1,    0.9, 0.8, 0.9,
                      0.3, 0,   0,   0,   0,   0, 1,    0.1, 0.6, 0.2, 0.25, 0,   0,   0,
                      0,   0,   0,   0,   0,   0, 0,    0,   0,   0,   0,    0};
  };
  const std::string region =
      "num: 2 num_class: 3 thresh: 0.4 biases: 1 biases: 0.8 biases: 2.5 "
      "biases: 0.5 rescore: 0 ";
  yolo("", "RegionLoss", "region_loss_param { " + region + "}");
  yolo("Sigmoid", "RegionLoss", "region_loss_param { " + region + "softmax: 0 bias_match: 0 }");
  const std::string yolo3 =
      "num: 2 num_class: 3 anchors_scale: 16 thresh: 0.4 coord_scale: 1 "
      "mask: 2 mask: 0 biases: 16 biases: 12 biases: 9 biases: 9 biases: 40 "
      "biases: 8 ";
  yolo("", "Yolov3", "yolov3_param { " + yolo3 + "}");
  yolo("Squares", "Yolov3", "yolov3_param { use_logic_gradient: true " + yolo3 + "}");
  // Objects and prior boxes are constants; the matches do not change for small steps.
  const auto multibox = [&](const std::string& name, const std::string& options, int locations) {
    GradientCase& test =
        add({"MultiBoxLoss" + name, StrCat("2x", 16 * locations, " 2x12"),
             StrCat("layer { name: 'map' type: 'DummyData' top: 'map' top: 'image' "
                    "dummy_data_param { shape { dim: 1 dim: 1 dim: 2 dim: 2 } shape { dim: 1 dim: "
                    "3 dim: 40 dim: 40 } } } "
                    "layer { name: 'p' type: 'PriorBox' bottom: 'map' bottom: 'image' top: 'p' "
                    "prior_box_param { min_size: 18 variance: 0.1 variance: 0.1 variance: 0.2 "
                    "variance: 0.2 } } "
                    "layer { name: 'l' type: 'MultiBoxLoss' bottom: 'x0' bottom: 'x1' bottom: 'p' "
                    "bottom: 'c0' top: 'y' multibox_loss_param { num_classes: 3 ",
                    options, " } }"),
             -1, 1, 0, "1x1x3x8"});
    test.tolerance = 1e-5;
    // item, label, instance, xmin, ymin, xmax, ymax, difficult
    test.constants = {0,    1,    0,   0.05, 0.1, 0.5, 0.45, 0,   0,   2,   0,   0.5,
                      0.45, 0.95, 0.9, 0,    1,   2,   0,    0.1, 0.5, 0.6, 1.0, 1};
  };
  multibox("", "", 1);
  multibox("CenterSize", "code_type: CENTER_SIZE overlap_threshold: 0.3 loc_weight: 2", 1);
  multibox("CornerSizeL2", "code_type: CORNER_SIZE loc_loss_type: L2 mining_type: NONE", 1);
  multibox("Logistic", "conf_loss_type: LOGISTIC", 1);
  multibox("HardExample", "mining_type: HARD_EXAMPLE sample_size: 3", 1);
  multibox("OwnLocations", "share_location: false mining_type: NONE match_type: BIPARTITE", 3);
}

const GradientCases boxes_gradients("boxes", BoxesGradients);

}  // namespace
}  // namespace caffe
