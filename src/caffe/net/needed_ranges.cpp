#include "caffe/net/needed_ranges.hpp"

#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/io/calibration.hpp"
#include "caffe/net/plan.hpp"

namespace caffe {
namespace {

// Names the net or layer that requests a precision for which ranges are needed.
struct Asking {
  std::string who;  // for messages; empty if none
  Precision precision = INT8;
};

Asking WhoAsks(const NetParameter& param, const NetOptions& options) {
  const PrecisionDefaults of_net = DefaultsOf(param, options.precision);
  for (const Precision precision : {INT8, FAKE_INT8}) {
    const auto& layers = param.layer();
    const auto found = std::ranges::find_if(layers, [&](const LayerParameter& layer) {
      return layer.has_precision() && layer.precision() == precision;
    });
    // In a net that is trained for 8 bits, layers of precision INT8 round, too.
    const Precision meant = of_net.fakes_8_bits ? FAKE_INT8 : precision;
    if (found != layers.end()) return {StrCat("layer '", found->name(), "'"), meant};
    if (precision == INT8 ? of_net.in_8_bits : of_net.fakes_8_bits) return {"it", precision};
  }
  return {};
}

}  // namespace

std::shared_ptr<const BlobRanges> NeededRanges(const NetParameter& param,
                                               const NetOptions& options) {
  const auto [who, precision] = WhoAsks(param, options);
  if (who.empty()) return nullptr;
  const std::string net = StrCat("net '", param.name(), "': ");
  Require(precision == FAKE_INT8 || param.state().phase() == TEST, net, who,
          " has precision INT8, which is for phase TEST, and the net's is TRAIN: train in FP32 or "
          "BF16, run caffe calibrate, train on in FAKE_INT8 where accuracy is lost, and give "
          "precision INT8 to the net of phase TEST");
  const std::string& file = options.calibration.empty() ? param.calibration() : options.calibration;
  Require(!file.empty(), net, who, " has precision ", Precision_Name(precision),
          ", which needs the ranges of the net's blobs: make a file of them with "
          "caffe calibrate and give it by --calibration FILE or the net's field calibration");
  auto ranges = std::make_shared<BlobRanges>(ReadCalibration(file));
  Require(ranges->net == param.name(), net, "calibration ", file, " was made of net '", ranges->net,
          "'; run caffe calibrate on this net, or give both definitions one name");
  return ranges;
}

}  // namespace caffe
