#include <algorithm>
#include <cmath>

#include "caffe/core/for_each_item.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/detection_blobs.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Proposals of a region proposal network (Ren et al. 2015, "Faster R-CNN"), as rows of (item, x1,
// y1, x2, y2) in pixels of the image, and their scores if there is a second top. Bottoms: scores
// (N, 2 x anchors, H, W; the second half is that of the objects), offsets (N, 4 x anchors, H, W)
// and rows of (height, width, scale[, scale of the width]), one per item or one for all.
//
// A box from pixel 3 to pixel 5 is three pixels wide, so boxes end at x2 + 1 in the code below.
class ProposalLayer final : public Layer {
 public:
  explicit ProposalLayer(const LayerParameter& param)
      : Layer(param), options_(Checked(param.proposal_param())) {}

  LayerTraits traits() const override {
    return {.num_bottoms = 3, .min_tops = 1, .max_tops = 2, .has_backward = false};
  }

  // Before data has been seen, assumes the maximum number of boxes.
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &scores = bottoms[0], &offsets = bottoms[1], &images = bottoms[2];
    for (const Shape& map : {scores, offsets}) {
      Require(map.num_axes() == 4, "a bottom has shape ", map, "; scores and offsets are N,C,H,W");
    }
    const int64_t anchors = static_cast<int64_t>(Anchors(options_).size());
    Require(scores[1] == 2 * anchors && offsets[1] == 4 * anchors, "bottoms 0 and 1 have ",
            scores[1], " and ", offsets[1], " channels; ", options_.ratio_size(), " ratios and ",
            options_.scale_size(), " scales need ", 2 * anchors, " and ", 4 * anchors);
    Require(
        scores[0] == offsets[0] && scores.count(2) == offsets.count(2) && scores[2] == offsets[2],
        "bottoms 0 and 1 have shapes ", scores, " and ", offsets,
        "; items, height and width must agree");
    Require(images.num_axes() >= 2 && images.count(1) >= 3 &&
                (images[0] == 1 || images[0] == scores[0]),
            "bottom 2 has shape ", images,
            "; it must hold rows of (height, width, scale), one for each of ", scores[0],
            " items or one for all");
    const int64_t most = std::min<int64_t>(options_.post_nms_topn(), anchors * scores.count(2));
    return Tops(scores[0] * most, param().top_size());
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> tops;
    for (int i = 0; i < graph.num_tops(); ++i) tops.push_back(graph.top(i));
    graph.Emit(
        ops::HostCall{.what = "proposals",
                      .call = [options = options_, count = graph.num_tops()](
                                  const KernelContext& ctx) { return Run(options, count, ctx); },
                      .rounded_inputs = {0, 1}},
        {graph.bottom(0), graph.bottom(1), graph.bottom(2)}, std::move(tops));
  }

 private:
  // Fills in the layer's default ratios and scales.
  static ProposalParameter Checked(ProposalParameter options) {
    if (options.ratio_size() == 0) {
      for (const float ratio : {0.5f, 1.0f, 2.0f}) options.add_ratio(ratio);
    }
    if (options.scale_size() == 0) {
      for (const float scale : {8.0f, 16.0f, 32.0f}) options.add_scale(scale);
    }
    for (const auto* numbers : {&options.ratio(), &options.scale()}) {
      for (const float number : *numbers) {
        Require(number > 0, "a ratio or scale is ", number, "; it must be above 0");
      }
    }
    Require(options.feat_stride() > 0 && options.base_size() > 0, "feat_stride and base_size are ",
            options.feat_stride(), " and ", options.base_size(), "; both must be at least 1");
    Require(options.pre_nms_topn() > 0 && options.post_nms_topn() > 0,
            "pre_nms_topn and post_nms_topn are ", options.pre_nms_topn(), " and ",
            options.post_nms_topn(), "; both must be at least 1");
    Require(options.nms_thresh() >= 0, "nms_thresh is ", options.nms_thresh(),
            "; it must not be negative");
    return options;
  }

  static std::vector<Shape> Tops(int64_t boxes, int count) {
    std::vector<Shape> tops = {Shape{boxes, 5}, Shape{boxes, 1}};
    tops.resize(count);
    return tops;
  }

  // Anchors at the first position of the map, ordered by ratio; sides are rounded to pixels before
  // they are scaled.
  static std::vector<ops::Box> Anchors(const ProposalParameter& options) {
    const double base = options.base_size(), center = base / 2;
    std::vector<ops::Box> anchors;
    for (const double ratio : options.ratio()) {
      const double width = std::round(std::sqrt(base * base / ratio));
      const double height = std::round(width * ratio);
      for (const double scale : options.scale()) {
        const double w = width * scale / 2, h = height * scale / 2;
        anchors.push_back({center - w, center - h, center + w, center + h});
      }
    }
    return anchors;
  }

  struct Proposals {
    std::vector<double> rows, scores;
  };

  // Returns the tops' shapes if they differ from the planned ones.
  static std::vector<Shape> Run(const ProposalParameter& options, int count,
                                const KernelContext& ctx) {
    const Maps maps{ValuesOf(ctx.input(0)), ValuesOf(ctx.input(1)), ctx.input(0).shape[3],
                    ctx.input(0).shape.count(2)};
    const std::vector<double> images = ValuesOf(ctx.input(2));
    const int64_t columns = ctx.input(2).shape.count(1);
    const int64_t items = ctx.input(0).shape[0];
    std::vector<Proposals> of_items(items);
    ForEachItem(items, [&](int64_t item) {
      const bool has_own = static_cast<int64_t>(images.size()) >= items * columns;
      const double* image = &images[has_own ? item * columns : 0];
      Propose(options, maps, item,
              {.height = image[0],
               .width = image[1],
               .least_height = options.min_size() * image[2],
               .least_width = options.min_size() * image[columns > 3 ? 3 : 2]},
              &of_items[item]);
    });
    Proposals found;
    for (const Proposals& one : of_items) {
      found.rows.insert(found.rows.end(), one.rows.begin(), one.rows.end());
      found.scores.insert(found.scores.end(), one.scores.begin(), one.scores.end());
    }
    if (found.scores.empty()) found = {std::vector<double>(5, 0), {0}};
    const std::vector<Shape> shapes = Tops(static_cast<int64_t>(found.scores.size()), count);
    if (!(ctx.output(0).shape == shapes[0])) return shapes;
    const auto store = [&](int output, std::vector<double>& values) {
      CopyTensor({{shapes[output], DType::kDouble, Layout::kPlain}, values.data()},
                 ctx.output(output));
    };
    store(0, found.rows);
    if (count > 1) store(1, found.scores);
    return {};
  }

  struct Maps {
    std::vector<double> scores, offsets;
    int64_t width, places;
  };
  struct Image {
    double height, width, least_height, least_width;
  };

  static void Propose(const ProposalParameter& options, const Maps& maps, int64_t item,
                      const Image& image, Proposals* found) {
    const std::vector<ops::Box> anchors = Anchors(options);
    const int64_t count = static_cast<int64_t>(anchors.size());
    const int64_t places = maps.places;
    std::vector<ops::Box> boxes;
    std::vector<ops::ScoredBox> candidates;
    for (int64_t place = 0; place < places; ++place) {
      const double x = static_cast<double>(place % maps.width * options.feat_stride());
      const double y = static_cast<double>(place / maps.width * options.feat_stride());
      for (int64_t a = 0; a < count; ++a) {
        const ops::Box& base = anchors[a];
        ops::BoxCodes codes;
        for (int k = 0; k < 4; ++k)
          codes[k] = maps.offsets[((item * count + a) * 4 + k) * places + place];
        const ops::Box decoded =
            ops::Decode(codes, {base.xmin + x, base.ymin + y, base.xmax + x, base.ymax + y},
                        {1, 1, 1, 1}, ops::BoxCode::kCenterSize, false);
        const double score = maps.scores[((item * 2 + 1) * count + a) * places + place];
        if (!IsFinite(decoded) || std::isnan(score)) continue;
        const ops::Box box = Clipped(decoded, image);
        if (!(box.width() >= image.least_width && box.height() >= image.least_height)) continue;
        candidates.push_back({score, static_cast<int64_t>(boxes.size())});
        boxes.push_back(box);
      }
    }
    ops::KeepBest(&candidates, static_cast<int>(options.pre_nms_topn()));
    candidates = ops::Suppress(candidates, boxes, options.nms_thresh(), 1,
                               static_cast<int>(options.post_nms_topn()));
    for (const ops::ScoredBox& one : candidates) {
      const ops::Box& box = boxes[one.index];
      found->rows.insert(found->rows.end(), {static_cast<double>(item), box.xmin, box.ymin,
                                             box.xmax - 1, box.ymax - 1});
      found->scores.push_back(one.score);
    }
  }

  // Clips to the first and last pixels of the image. Decode's last edge is a pixel, as in the
  // forks: a box grows by the pixel that its anchor counts.
  static ops::Box Clipped(const ops::Box& box, const Image& image) {
    const double right = std::max(image.width - 1, 0.0), bottom = std::max(image.height - 1, 0.0);
    return {std::clamp(box.xmin, 0.0, right), std::clamp(box.ymin, 0.0, bottom),
            std::clamp(box.xmax, 0.0, right) + 1, std::clamp(box.ymax, 0.0, bottom) + 1};
  }

  const ProposalParameter options_;
};

REGISTER_LAYER_CLASS(Proposal);

}  // namespace
}  // namespace caffe
