// Resized images.
#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/net_writer.hpp"

namespace caffe::fuzz {
namespace {

void AddResized(NetWriter& net) {
  const auto bottom = net.ChooseImage();
  if (!bottom) return;
  const std::string size =
      StrCat(" height: ", net.random().Between(1, 7), " width: ", net.random().Between(1, 7), " }");
  net.Add(
      net.random().Pick<std::string>({"type: 'Upsample' upsample_param { scale: 2 }",
                                      "type: 'Interp' interp_param { zoom_factor: 2 }",
                                      "type: 'Interp' interp_param {" + size,
                                      "type: 'Interp' interp_param { align_corners: false" + size,
                                      "type: 'Interp' interp_param { align_corners: false" + size,
                                      "type: 'Resample' resample_param { type: CUBIC" + size,
                                      "type: 'Resample' resample_param { type: AREA" + size}),
      {*bottom}, {net.NewTop()});
}

const NetKind resized("resized", 6, AddResized);

}  // namespace
}  // namespace caffe::fuzz
