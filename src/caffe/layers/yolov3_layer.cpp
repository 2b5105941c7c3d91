#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"

namespace caffe {

// YOLO 3's loss (MobileNet-YOLO). The type is known, so that the refusal can say what is there.
static const LayerRegistrar layer_registrar_Yolov3(
    "Yolov3", [](const LayerParameter&) -> std::shared_ptr<Layer> {
      throw Unsupported(
          "trains YOLO 3, which this project does not; train with MobileNet-YOLO, and "
          "Yolov3DetectionOutput reads the boxes of a net that was trained there");
    });

}  // namespace caffe
