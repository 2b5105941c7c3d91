#include <algorithm>

#include "caffe/core/for_each_item.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/detection_blobs.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Peaks of heat maps (Cao et al. 2017, "Realtime multi-person 2D pose estimation"): for each part's
// map, the first max_peaks elements, row by row, that exceed the threshold and all their eight
// neighbours; elements that are or touch a NaN are not peaks. Bottom: maps (N,C,H,W); the first
// num_parts are used. Top: (N, num_parts, 1 + max_peaks, 3); row 0 begins with the number of peaks,
// the others are x, y and height.
class NmsLayer final : public Layer {
 public:
  explicit NmsLayer(const LayerParameter& param) : Layer(param), options_(param.nms_param()) {
    Require(options_.max_peaks() > 0 && options_.num_parts() > 0, "max_peaks and num_parts are ",
            options_.max_peaks(), " and ", options_.num_parts(), "; both must be at least 1");
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .has_backward = false};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& maps = bottoms[0];
    Require(maps.num_axes() == 4 && maps[1] >= options_.num_parts(), "bottom 0 has shape ", maps,
            "; it must be N,C,H,W with at least num_parts ", options_.num_parts(), " channels");
    return {Shape{maps[0], options_.num_parts(), int64_t{options_.max_peaks()} + 1, 3}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(
        ops::HostCall{.what = "peaks",
                      .call = [options = options_](const KernelContext& ctx) { Run(options, ctx); },
                      .rounded_inputs = {0}},
        {graph.bottom(0)}, {graph.top(0)});
  }

 private:
  static void Run(const NmsParameter& options, const KernelContext& ctx) {
    const std::vector<double> maps = ValuesOf(ctx.input(0));
    const Shape &shape = ctx.input(0).shape, &top = ctx.output(0).shape;
    std::vector<double> peaks(top.count(), 0);
    const int64_t parts = options.num_parts();
    ForEachItem(shape[0] * parts, [&](int64_t i) {
      const int64_t map = i / parts * shape[1] + i % parts;
      FindPeaks(options, {&maps[map * shape.count(2)], shape[2], shape[3]},
                &peaks[i * top.count(2)]);
    });
    CopyTensor({{top, DType::kDouble, Layout::kPlain}, peaks.data()}, ctx.output(0));
  }

  struct Map {
    const double* values;
    int64_t height, width;

    double At(int64_t y, int64_t x) const { return values[y * width + x]; }
    bool IsPeak(int64_t y, int64_t x) const {
      for (int64_t h = y - 1; h <= y + 1; ++h) {
        for (int64_t w = x - 1; w <= x + 1; ++w) {
          if ((h != y || w != x) && !(At(h, w) < At(y, x))) return false;
        }
      }
      return true;
    }
  };

  static void FindPeaks(const NmsParameter& options, const Map& map, double* rows) {
    int count = 0;
    for (int64_t y = 1; y < map.height - 1; ++y) {
      for (int64_t x = 1; x < map.width - 1 && count < options.max_peaks(); ++x) {
        if (!(map.At(y, x) > options.threshold()) || !map.IsPeak(y, x)) continue;
        StorePeak(map, y, x, rows + 3 * static_cast<int64_t>(++count));
      }
    }
    rows[0] = count;
  }

  // Refines the position: the mean of the surrounding positions, weighted by their positive values.
  static void StorePeak(const Map& map, int64_t y, int64_t x, double* row) {
    constexpr int64_t kReach = 3;
    double sum = 0, sum_of_x = 0, sum_of_y = 0;
    for (int64_t h = std::max<int64_t>(y - kReach, 0); h <= std::min(y + kReach, map.height - 1);
         ++h) {
      for (int64_t w = std::max<int64_t>(x - kReach, 0); w <= std::min(x + kReach, map.width - 1);
           ++w) {
        const double weight = std::max(map.At(h, w), 0.0);
        sum += weight;
        sum_of_x += weight * static_cast<double>(w);
        sum_of_y += weight * static_cast<double>(h);
      }
    }
    row[0] = sum > 0 ? sum_of_x / sum : static_cast<double>(x);
    row[1] = sum > 0 ? sum_of_y / sum : static_cast<double>(y);
    row[2] = map.At(y, x);
  }

  const NmsParameter options_;
};

REGISTER_LAYER_CLASS(Nms);

}  // namespace
}  // namespace caffe
