#include "caffe/layer_factory.hpp"
#include "caffe/layers/convolution_base.hpp"

namespace caffe {
namespace {

// Another fork's name for depthwise convolution: one group per input channel, whatever the file's
// `group` says.
class ConvolutionDepthwiseLayer final : public ConvolutionLayer {
 public:
  using ConvolutionLayer::ConvolutionLayer;

 private:
  int64_t Groups(const Shape& bottom) const override { return bottom[ChannelAxis(bottom)]; }
};

REGISTER_LAYER_CLASS(ConvolutionDepthwise, "convolution_param");

}  // namespace
}  // namespace caffe
