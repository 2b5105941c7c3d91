#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"

namespace caffe {

// A net that NVIDIA's TensorRT would run instead of this framework (NVCaffe). The type is
// registered only so that the error can say what to do.
static const RefusedLayerRegistrar layer_registrar_TRT(
    "TRT", [](const LayerParameter& param) -> std::shared_ptr<Layer> {
      throw Unsupported(StrCat("would run '", param.trt_param().deploy(),
                               "' by TensorRT, which this project does not use; run that net "
                               "itself: caffe test --model=NET --weights=",
                               param.trt_param().model(), " --precision fp16"));
    });

}  // namespace caffe
