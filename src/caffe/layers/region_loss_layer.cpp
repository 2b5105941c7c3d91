#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"

namespace caffe {

// YOLO 2's loss (MobileNet-YOLO). The type is known, so that the refusal can say what is there.
static const LayerRegistrar layer_registrar_RegionLoss(
    "RegionLoss", [](const LayerParameter&) -> std::shared_ptr<Layer> {
      throw Unsupported(
          "trains YOLO 2, which this project does not; train with MobileNet-YOLO, and "
          "YoloDetectionOutput reads the boxes of a net that was trained there");
    });

}  // namespace caffe
