#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/yolo_loss_base.hpp"

namespace caffe {
namespace {

// YOLO 3's loss for one map, with the gradients of github.com/eric612/MobileNet-YOLO, which reports
// the sum of their squares; this layer reports the sum that is minimised. An object belongs to the
// map whose mask contains its most similar anchor. As there, noobject_scale is not used, and
// object_scale only with use_logic_gradient.
class Yolov3Layer final : public YoloLossBase {
 public:
  explicit Yolov3Layer(const LayerParameter& param) : YoloLossBase(param) {
    const Yolov3Parameter& options = param.yolov3_param();
    Require(options.anchors_scale() > 0,
            "anchors_scale is 0; it must be above 0: pixels of the image per cell");
    SetBoxes(options.num(), options.num_class(), options.biases(),
             static_cast<float>(options.anchors_scale()));
    Require(options.mask_size() == options_.boxes, "there are ", options.mask_size(), " masks; ",
            options.num(), " boxes (num) need one each");
    for (int box = 0; box < options_.boxes; ++box) {
      Require(static_cast<int64_t>(options.mask(box)) < options_.anchors, "mask ",
              options.mask(box), " names an anchor that the ", options.biases_size(),
              " biases do not have; an anchor is a width and a height");
      options_.mask[box] = static_cast<int>(options.mask(box));
    }
    options_.free_above = options.thresh();
    options_.coord_scale = options.coord_scale();
    options_.class_scale = options.class_scale();
    options_.weighs_size = options_.keeps_labels = true;
    if (options.use_logic_gradient()) {
      options_.object_scale = options.object_scale();
      options_.of_class = ops::YoloTarget::kSquared;
    } else {
      options_.of_place = options_.of_class = ops::YoloTarget::kCrossEntropy;
    }
  }
};

REGISTER_LAYER_CLASS(Yolov3);

}  // namespace
}  // namespace caffe
