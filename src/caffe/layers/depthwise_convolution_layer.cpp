#include "caffe/layer_factory.hpp"
#include "caffe/layers/convolution_base.hpp"

namespace caffe {
namespace {

// The name that forks with a kernel of their own for `group: C` use; the compiler sees the groups
// itself, so this is Convolution.
class DepthwiseConvolutionLayer final : public ConvolutionLayer {
 public:
  using ConvolutionLayer::ConvolutionLayer;
};

REGISTER_LAYER_CLASS(DepthwiseConvolution, "convolution_param");

}  // namespace
}  // namespace caffe
