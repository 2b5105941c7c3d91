#include <algorithm>
#include <cmath>
#include <memory>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/constant.hpp"

namespace caffe {
namespace {

// Default boxes of a feature map (bottom 0) relative to the image (bottom 1): row 0 of the top
// contains corners, row 1 variances. They depend only on shapes, so they are computed when the net
// is built.
class PriorBoxLayer final : public Layer {
 public:
  explicit PriorBoxLayer(const LayerParameter& param)
      : Layer(param), options_(param.prior_box_param()) {
    Require(options_.min_size_size() > 0, "prior_box_param { min_size } is missing");
    Require(options_.max_size_size() == 0 || options_.max_size_size() == options_.min_size_size(),
            "has ", options_.min_size_size(), " min_size and ", options_.max_size_size(),
            " max_size entries; give none or one max_size for each min_size");
    for (int i = 0; i < options_.min_size_size(); ++i) {
      Require(options_.min_size(i) > 0, "min_size is ", options_.min_size(i),
              "; it must be positive");
      Require(i >= options_.max_size_size() || options_.max_size(i) > options_.min_size(i),
              "max_size ", i < options_.max_size_size() ? options_.max_size(i) : 0,
              " must exceed min_size ", options_.min_size(i));
    }
    const int variances = options_.variance_size();
    Require(variances <= 1 || variances == 4, "variance is given ", variances,
            " times; give none, one or four");
    Require(!options_.has_img_size() || (!options_.has_img_h() && !options_.has_img_w()),
            "has both img_size and img_h or img_w; give one of the two");
    Require(!options_.has_step() || (!options_.has_step_h() && !options_.has_step_w()),
            "has both step and step_h or step_w; give one of the two");
    ratios_ = {1};
    for (const float ratio : options_.aspect_ratio()) {
      Require(ratio > 0, "aspect_ratio is ", ratio, "; it must be positive");
      const bool is_known = std::any_of(ratios_.begin(), ratios_.end(), [&](float known) {
        return std::abs(ratio - known) < 1e-6f;
      });
      if (is_known) continue;
      ratios_.push_back(ratio);
      if (options_.flip()) ratios_.push_back(1 / ratio);
    }
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 2, .num_tops = 1, .has_backward = false};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    for (const Shape& bottom : bottoms) {
      Require(bottom.num_axes() == 4, "needs bottoms with 4 axes (N,C,H,W), got shape ", bottom);
    }
    return {Shape{1, 2, bottoms[0][2] * bottoms[0][3] * boxes_per_cell() * 4}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    const Shape &map = graph.shape(graph.bottom(0)), &image = graph.shape(graph.bottom(1));
    graph.Emit(ops::Constant{std::make_shared<const std::vector<float>>(Boxes(map, image))}, {},
               {graph.top(0)});
  }

 private:
  int64_t boxes_per_cell() const {
    return static_cast<int64_t>(ratios_.size()) * options_.min_size_size() +
           options_.max_size_size();
  }

  std::vector<float> Boxes(const Shape& map, const Shape& image) const {
    float height = static_cast<float>(image[2]), width = static_cast<float>(image[3]);
    if (options_.has_img_size()) height = width = static_cast<float>(options_.img_size());
    if (options_.has_img_h()) height = static_cast<float>(options_.img_h());
    if (options_.has_img_w()) width = static_cast<float>(options_.img_w());
    float step_h = options_.has_step() ? options_.step() : options_.step_h();
    float step_w = options_.has_step() ? options_.step() : options_.step_w();
    if (step_h == 0) step_h = height / static_cast<float>(map[2]);
    if (step_w == 0) step_w = width / static_cast<float>(map[3]);
    std::vector<float> values;
    const auto add = [&](float x, float y, float box_width, float box_height) {
      for (const float corner : {(x - box_width / 2) / width, (y - box_height / 2) / height,
                                 (x + box_width / 2) / width, (y + box_height / 2) / height}) {
        values.push_back(options_.clip() ? std::clamp(corner, 0.0f, 1.0f) : corner);
      }
    };
    for (int64_t row = 0; row < map[2]; ++row) {
      for (int64_t column = 0; column < map[3]; ++column) {
        const float x = (static_cast<float>(column) + options_.offset()) * step_w;
        const float y = (static_cast<float>(row) + options_.offset()) * step_h;
        for (int i = 0; i < options_.min_size_size(); ++i) {
          // Truncated to whole pixels, as in the original.
          const float size = std::trunc(options_.min_size(i));
          add(x, y, size, size);
          if (i < options_.max_size_size()) {
            const float between = std::sqrt(size * std::trunc(options_.max_size(i)));
            add(x, y, between, between);
          }
          for (const float ratio : ratios_) {
            if (std::abs(ratio - 1) < 1e-6f) continue;
            add(x, y, size * std::sqrt(ratio), size / std::sqrt(ratio));
          }
        }
      }
    }
    const size_t corners = values.size();
    for (size_t i = 0; i < corners; ++i) {
      values.push_back(options_.variance_size() == 0 ? 0.1f
                       : options_.variance_size() == 1
                           ? options_.variance(0)
                           : options_.variance(static_cast<int>(i % 4)));
    }
    return values;
  }

  const PriorBoxParameter options_;
  std::vector<float> ratios_;
};

REGISTER_LAYER_CLASS(PriorBox);

}  // namespace
}  // namespace caffe
