#include "caffe/layer_factory.hpp"
#include "caffe/layers/convolution_base.hpp"

namespace caffe {
namespace {

// Name used by forks with a special kernel for `group: C`; here the compiler recognises the groups
// itself, so this is Convolution.
class DepthwiseConvolutionLayer final : public ConvolutionLayer {
 public:
  using ConvolutionLayer::ConvolutionLayer;
};

REGISTER_LAYER_CLASS(DepthwiseConvolution, "convolution_param");

}  // namespace
}  // namespace caffe
