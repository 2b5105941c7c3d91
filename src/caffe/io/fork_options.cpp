#include "caffe/io/fork_options.hpp"

#include "caffe/error.hpp"

namespace caffe {

bool UpgradeHoles(LayerParameter* layer) {
  const ConvolutionParameter& given = layer->convolution_param();
  const bool has_pair = given.has_hole_h() || given.has_hole_w();
  if (!given.has_hole() && !has_pair) return false;
  const auto require = [&](bool holds, const char* text) {
    Require(holds, "layer '", layer->name(), "' (", layer->type(), "): convolution_param has ",
            text);
  };
  require(given.has_hole_h() == given.has_hole_w(), "one of hole_h and hole_w; give both, or hole");
  require(!given.has_hole() || !has_pair, "hole and hole_h, hole_w; keep one");
  require(given.dilation_size() == 0, "dilation and its older name hole; keep dilation");
  ConvolutionParameter* options = layer->mutable_convolution_param();
  options->add_dilation(has_pair ? given.hole_h() : given.hole());
  if (has_pair) options->add_dilation(given.hole_w());
  options->clear_hole();
  options->clear_hole_h();
  options->clear_hole_w();
  return true;
}

}  // namespace caffe
