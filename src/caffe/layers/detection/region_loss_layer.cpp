#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/yolo_loss_base.hpp"

namespace caffe {
namespace {

// YOLO 2's loss. Gradients are those of github.com/eric612/MobileNet-YOLO after its first 12,800
// images, in which all boxes also learn their anchors; github.com/choasup/caffe-yolo9000 has no
// such phase. Both report the sum of the squared gradients; this layer reports the sum that is
// minimised.
class RegionLossLayer final : public YoloLossBase {
 public:
  explicit RegionLossLayer(const LayerParameter& param) : YoloLossBase(param) {
    const RegionLossParameter& options = param.region_loss_param();
    if (options.has_softmax_tree() || options.has_class_map()) {
      throw Unsupported(
          "has softmax_tree or class_map of YOLO 9000, whose classes form a tree; leave them out "
          "for the classes of YOLO 2");
    }
    Require(options.coords() == 4, "coords is ", options.coords(), "; a box has 4");
    SetBoxes(options.num(), options.num_class(), options.biases(), 1);
    Require(options_.anchors == options_.boxes, "there are ", options.biases_size(), " biases; ",
            options.num(), " boxes (num) need a width and a height each, in cells");
    for (int box = 0; box < options_.boxes; ++box) options_.mask[box] = box;
    options_.matches_anchors = options.bias_match() != 0;
    options_.free_above = options.thresh();
    options_.coord_scale = options.coord_scale();
    options_.object_scale = options.object_scale();
    options_.noobject_scale = options.noobject_scale();
    options_.class_scale = options.class_scale();
    options_.learns_overlap = options.rescore() != 0;
    options_.weighs_size = !options_.learns_overlap;
    options_.of_class =
        options.softmax() != 0 ? ops::YoloTarget::kSoftmax : ops::YoloTarget::kCrossEntropy;
  }
};

REGISTER_LAYER_CLASS(RegionLoss);

}  // namespace
}  // namespace caffe
