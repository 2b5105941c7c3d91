#include <algorithm>
#include <cmath>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/resize_base.hpp"
#include "caffe/ops/missing.hpp"

namespace caffe {
namespace {

// Distance-weighted means of neighbourhoods, in a smaller image whose corner pixels coincide with
// the bottom's (FlowNet). NaN marks an unknown pixel: the mean uses the other pixels, and is NaN if
// unknown pixels weigh more than half of the known ones. Used for ground truth of several sizes; it
// has no gradient.
class DownsampleLayer final : public ResizeBase {
 public:
  explicit DownsampleLayer(const LayerParameter& param)
      : ResizeBase(param), options_(param.downsample_param()) {
    Require(param.bottom_size() == 2 || has_size(),
            "has no size; set downsample_param { top_height top_width }, or give a second bottom");
  }

  LayerTraits traits() const override {
    LayerTraits traits = ResizeBase::traits();
    traits.has_backward = false;
    return traits;
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value *x = graph.bottom(0), *y = graph.top(0);
    Value* known = graph.Scratch("known", graph.shape(x));
    Value* numbers = graph.Scratch("numbers", graph.shape(x));
    Value* share = graph.Scratch("share", graph.shape(y));
    Value* sums = graph.Scratch("sums", graph.shape(y));
    graph.Emit(ops::IsKnown{}, {x}, {known});
    graph.Emit(ops::KnownOrZero{}, {x}, {numbers});
    EmitFilters(graph, "shares", known, share);
    EmitFilters(graph, "sums", numbers, sums);
    graph.Emit(ops::MeanOfKnown{}, {share, sums}, {y});
  }
  void EmitBackward(GraphBuilder&) const override {}

 private:
  bool has_size() const { return options_.top_height() > 0 && options_.top_width() > 0; }

  ImageSize TopSize(const std::vector<Shape>& bottoms) const override {
    const ImageSize size =
        bottoms.size() == 2
            ? SizeOfSecondBottom(bottoms, options_.has_top_height() || options_.has_top_width())
            : ImageSize{options_.top_height(), options_.top_width()};
    Require(size[0] <= bottoms[0][2] && size[1] <= bottoms[0][3], "the top would have ", size[0],
            "x", size[1], " pixels, the bottom has ", bottoms[0][2], "x", bottoms[0][3],
            "; use Resample to enlarge images");
    return size;
  }

  AxisMatrix Filter(int axis, const ImageSize& from, const ImageSize& to) const override {
    const auto last = static_cast<double>(from[axis] - 1);
    const int64_t outputs = to[axis];
    // A single output is at the centre, and uses the whole axis.
    const double step = outputs == 1 ? last + 1 : last / static_cast<double>(outputs - 1);
    AxisMatrix filter(from[axis]);
    for (int64_t output = 0; output < outputs; ++output) {
      const double centre = outputs == 1 ? last / 2 : static_cast<double>(output) * step;
      std::vector<AxisMatrix::Tap> taps;
      double sum = 0;
      // Visits only elements nearer than a step, because an axis may be long.
      const auto first = static_cast<int64_t>(std::max(0.0, std::floor(centre - step)));
      const auto end = static_cast<int64_t>(std::min(last, std::ceil(centre + step))) + 1;
      for (int64_t i = first; i < end; ++i) {
        const double weight = 1 - std::abs(static_cast<double>(i) - centre) / step;
        if (weight <= 0) continue;
        taps.push_back({i, weight});
        sum += weight;
      }
      for (AxisMatrix::Tap& tap : taps) tap.weight /= sum;
      filter.AddRow(taps);
    }
    return filter;
  }

  const DownsampleParameter options_;
};

REGISTER_LAYER_CLASS(Downsample);

}  // namespace
}  // namespace caffe
