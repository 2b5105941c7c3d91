#include <algorithm>
#include <cmath>
#include <utility>

#include "caffe/core/for_each_item.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/detection_blobs.hpp"
#include "caffe/layers/log_sum.hpp"
#include "caffe/layers/prefix_beams.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Labels are whole numbers that 16 bits may not hold, so the tops are float unless told otherwise.
LayerParameter WithFloatTops(LayerParameter param) {
  if (!param.has_forward_type()) param.set_forward_type(FLOAT);
  return param;
}

// Labels of sequences of scores before softmax, T x N x C as for CTCLoss. Bottom 1, if any, has the
// lengths N, or indicators T x N that are 0 at the start of a sequence and after its end.
class CTCDecoderLayer final : public Layer {
 public:
  explicit CTCDecoderLayer(const LayerParameter& param)
      : Layer(WithFloatTops(param)), options_(param.ctc_decoder_param()) {
    Require(options_.beam_width() >= 1, "beam_width is ", options_.beam_width(),
            "; it must be at least 1");
  }

  LayerTraits traits() const override {
    return {
        .min_bottoms = 1, .max_bottoms = 2, .min_tops = 1, .max_tops = 2, .has_backward = false};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& scores = bottoms[0];
    Require(scores.num_axes() >= 3 && scores.count(3) == 1, "bottom 0 has shape ", scores,
            "; scores are T x N x C (time, sequences, classes)");
    Require(scores[0] >= 1, "bottom 0 has shape ", scores, "; there must be at least 1 time step");
    Require(
        bottoms.size() == 1 || HasIndicators(scores, bottoms[1]) || bottoms[1].count() == scores[1],
        "bottom 1 has shape ", bottoms.back(), "; it must hold a length for each of ", scores[1],
        " sequences, or indicators T x N, ", scores[0], " x ", scores[1]);
    const int64_t blank = Blank(scores[2]);
    Require(blank >= 0 && blank < scores[2], "the blank is class ", blank, "; there are ",
            scores[2], " classes, so it must be one of 0..", scores[2] - 1);
    std::vector<Shape> tops = {Shape{scores[1], scores[0]}};
    if (param().top_size() > 1) tops.push_back(Shape{scores[1]});
    return tops;
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs = {graph.bottom(0)}, outputs = {graph.top(0)};
    const Shape& scores = graph.shape(graph.bottom(0));
    bool has_indicators = false;
    if (graph.num_bottoms() > 1) {
      inputs.push_back(graph.bottom(1));
      has_indicators = HasIndicators(scores, graph.shape(graph.bottom(1)));
    }
    if (graph.num_tops() > 1) outputs.push_back(graph.top(1));
    const auto call = [options = options_, blank = static_cast<int>(Blank(scores[2])),
                       has_indicators](const KernelContext& ctx) {
      Run(options, blank, has_indicators, ctx);
    };
    graph.Emit(ops::HostCall{.what = "ctc decoder", .call = call, .rounded_inputs = {0}},
               std::move(inputs), std::move(outputs));
  }

 private:
  static bool HasIndicators(const Shape& scores, const Shape& bottom) {
    return bottom.num_axes() >= 2 && bottom[0] == scores[0] && bottom[1] == scores[1] &&
           bottom.count(2) == 1;
  }
  int64_t Blank(int64_t classes) const {
    return options_.blank_index() < 0 ? classes + options_.blank_index() : options_.blank_index();
  }

  static std::vector<int64_t> Lengths(bool has_indicators, const KernelContext& ctx) {
    const int64_t steps = ctx.input(0).shape[0], count = ctx.input(0).shape[1];
    std::vector<int64_t> lengths(count, steps);
    if (ctx.inputs.size() < 2) return lengths;
    const std::vector<double> values = ValuesOf(ctx.input(1));
    for (int64_t n = 0; n < count; ++n) {
      if (has_indicators) {
        for (int64_t t = 1; t < lengths[n]; ++t) {
          if (std::round(values[t * count + n]) == 0) lengths[n] = t;
        }
        continue;
      }
      const double length = values[n];
      Require(length >= 0 && length <= static_cast<double>(steps) && length == std::round(length),
              "the length ", length, " of sequence ", n, " must be a whole number in 0..", steps);
      lengths[n] = static_cast<int64_t>(length);
    }
    return lengths;
  }

  // The logarithms of the probabilities of all classes.
  static std::vector<double> LogSoftmax(const double* scores, int64_t classes, int64_t n,
                                        int64_t t) {
    std::vector<double> log_y(scores, scores + classes);
    double sum = kLogZero;
    for (const double score : log_y) sum = LogAdd(sum, score);
    Require(std::isfinite(sum), "the scores of sequence ", n, " at time step ", t,
            " have no softmax; they must be numbers, and one must be finite");
    for (double& one : log_y) one -= sum;
    return log_y;
  }

  static std::vector<int> WithoutBlanks(const std::vector<int>& path, int blank, bool merges) {
    std::vector<int> labels;
    for (size_t t = 0; t < path.size(); ++t) {
      const bool is_repeated = merges && t > 0 && path[t] == path[t - 1];
      if (path[t] != blank && !is_repeated) labels.push_back(path[t]);
    }
    return labels;
  }

  static void Run(const CTCDecoderParameter& options, int blank, bool has_indicators,
                  const KernelContext& ctx) {
    const Shape& shape = ctx.input(0).shape;
    const int64_t steps = shape[0], count = shape[1], classes = shape[2];
    const std::vector<double> scores = ValuesOf(ctx.input(0));
    const std::vector<int64_t> lengths = Lengths(has_indicators, ctx);
    std::vector<double> labels(count * steps, -1), log_probabilities(count);
    ForEachItem(count, [&](int64_t n) {
      const auto log_y = [&](int64_t t) {
        return LogSoftmax(&scores[(t * count + n) * classes], classes, n, t);
      };
      std::vector<int> found;
      if (options.method() == CTCDecoderParameter::BEAM) {
        PrefixBeams beams(options.beam_width(), blank, options.merge_repeated());
        for (int64_t t = 0; t < lengths[n]; ++t) beams.Advance(log_y(t));
        found = beams.Labels();
        log_probabilities[n] = beams.LogProbability();
      } else {
        for (int64_t t = 0; t < lengths[n]; ++t) {
          const std::vector<double> probabilities = log_y(t);
          const auto best = std::ranges::max_element(probabilities);  // the first of equal ones
          found.push_back(static_cast<int>(best - probabilities.begin()));
          log_probabilities[n] += *best;
        }
        found = WithoutBlanks(found, blank, options.merge_repeated());
      }
      std::ranges::copy(found, labels.begin() + n * steps);
    });
    CopyTensor({{ctx.output(0).shape, DType::kDouble, Layout::kPlain}, labels.data()},
               ctx.output(0));
    if (!ctx.has_output(1)) return;
    CopyTensor({{ctx.output(1).shape, DType::kDouble, Layout::kPlain}, log_probabilities.data()},
               ctx.output(1));
  }

  const CTCDecoderParameter options_;
};

REGISTER_LAYER_CLASS(CTCDecoder);

}  // namespace
}  // namespace caffe
