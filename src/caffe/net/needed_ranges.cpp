#include "caffe/net/needed_ranges.hpp"

#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/io/calibration.hpp"
#include "caffe/net/plan.hpp"

namespace caffe {
namespace {

// Who asks for 8 bits, for messages; empty where nobody does.
std::string WhoAsks(const NetParameter& param, const NetOptions& options) {
  const auto& layers = param.layer();
  const auto found = std::ranges::find_if(layers, [](const LayerParameter& layer) {
    return layer.has_precision() && layer.precision() == INT8;
  });
  if (found != layers.end()) return StrCat("layer '", found->name(), "'");
  return DefaultsOf(param, options.precision).in_8_bits ? "it" : "";
}

}  // namespace

std::shared_ptr<const BlobRanges> NeededRanges(const NetParameter& param,
                                               const NetOptions& options) {
  const std::string who = WhoAsks(param, options);
  if (who.empty()) return nullptr;
  const std::string net = StrCat("net '", param.name(), "': ");
  Require(param.state().phase() == TEST, net, who,
          " has precision INT8, which is for phase TEST, and the net's is TRAIN: train in FP32 or "
          "BF16, run caffe calibrate, and give precision INT8 to the net of phase TEST");
  const std::string& file = options.calibration.empty() ? param.calibration() : options.calibration;
  Require(
      !file.empty(), net, who,
      " has precision INT8, which needs the ranges of the net's blobs: make a file of them with "
      "caffe calibrate and give it by -calibration FILE or the net's field calibration");
  auto ranges = std::make_shared<BlobRanges>(ReadCalibration(file));
  Require(ranges->net == param.name(), net, "calibration ", file, " was made of net '", ranges->net,
          "'; run caffe calibrate on this net, or give both definitions one name");
  return ranges;
}

}  // namespace caffe
