#include <algorithm>
#include <cmath>
#include <cstring>

#include "caffe/core/for_each_item.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/detection_blobs.hpp"
#include "caffe/layers/log_sum.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/term_losses.hpp"

namespace caffe {
namespace {

// A sequence of the batch: its first time steps, and its target labels.
struct Sequence {
  int64_t length = 0;
  std::vector<int> labels;
};

// The labels with blanks around each, and their allowed transitions.
class Path {
 public:
  Path(const std::vector<int>& labels, int blank, bool merges) : blank_(blank), merges_(merges) {
    for (const int label : labels) states_.insert(states_.end(), {blank, label});
    states_.push_back(blank);
  }

  int64_t size() const { return static_cast<int64_t>(states_.size()); }
  int operator[](int64_t state) const { return states_[state]; }
  // Possible predecessors of `state`: itself, the previous state, and the one before that.
  bool MayStay(int64_t state) const { return merges_ || states_[state] == blank_; }
  bool MaySkip(int64_t state) const {
    return state > 1 && states_[state] != blank_ &&
           !(merges_ && states_[state] == states_[state - 2]);
  }

 private:
  std::vector<int> states_;
  int blank_;
  bool merges_;
};

// Log probabilities of all alignments of one sequence with its labels (Graves et al. 2006,
// "Connectionist temporal classification"), for each time and state. A path advances by at most two
// states per step, so that only states from First(t) to Last(t) are on paths from start to end.
class Alignments {
 public:
  // log_y(t, class) must be defined for t in [0, steps).
  template <typename LogY>
  Alignments(const Path& path, int64_t steps, const LogY& log_y)
      : states_(path.size()), steps_(steps) {
    alpha_.assign(states_ * steps_, kLogZero);
    beta_.assign(states_ * steps_, kLogZero);
    for (int64_t s = 0; s < std::min<int64_t>(states_, 2); ++s) Alpha(0, s) = log_y(0, path[s]);
    for (int64_t t = 1; t < steps_; ++t) {
      for (int64_t s = First(t); s <= Last(t); ++s) {
        double sum = path.MayStay(s) ? Alpha(t - 1, s) : kLogZero;
        if (s > 0) sum = LogAdd(sum, Alpha(t - 1, s - 1));
        if (path.MaySkip(s)) sum = LogAdd(sum, Alpha(t - 1, s - 2));
        Alpha(t, s) = sum + log_y(t, path[s]);
      }
    }
    for (int64_t s = std::max<int64_t>(states_ - 2, 0); s < states_; ++s) Beta(steps_ - 1, s) = 0;
    for (int64_t t = steps_ - 2; t >= 0; --t) {
      for (int64_t s = First(t); s <= Last(t); ++s) {
        const auto after = [&](int64_t next) {
          return Beta(t + 1, next) + log_y(t + 1, path[next]);
        };
        double sum = path.MayStay(s) ? after(s) : kLogZero;
        if (s + 1 < states_) sum = LogAdd(sum, after(s + 1));
        if (s + 2 < states_ && path.MaySkip(s + 2)) sum = LogAdd(sum, after(s + 2));
        Beta(t, s) = sum;
      }
    }
  }

  // LogThrough() is for the paths through a state at a time, LogOfAll() for all paths.
  double LogThrough(int64_t t, int64_t state) const {
    return alpha_[t * states_ + state] + beta_[t * states_ + state];
  }
  double LogOfAll() const {
    double sum = kLogZero;
    for (int64_t s = 0; s < states_; ++s) sum = LogAdd(sum, LogThrough(steps_ - 1, s));
    return sum;
  }

 private:
  int64_t First(int64_t t) const {
    return std::max<int64_t>(states_ - 2 - 2 * (steps_ - 1 - t), 0);
  }
  int64_t Last(int64_t t) const { return std::min(2 * t + 1, states_ - 1); }

  double& Alpha(int64_t t, int64_t state) { return alpha_[t * states_ + state]; }
  double& Beta(int64_t t, int64_t state) { return beta_[t * states_ + state]; }

  int64_t states_, steps_;
  std::vector<double> alpha_, beta_;
};

// Loss for sequences without alignment. Bottom 0: scores before softmax, T x N x C. The others:
//   labels N x L, without blanks (WarpCTC);
//   indicators T x N, 0 at the start of a sequence and after its end, and labels L x N up to the
//   first negative one; or
//   lengths N, numbers of labels N, and labels L x N.
class CTCLossLayer final : public LossLayer {
 public:
  explicit CTCLossLayer(const LayerParameter& param)
      : LossLayer(param), options_(param.ctc_loss_param()) {
    Require(!options_.has_blank_index() || !options_.has_blank_label(),
            "blank_index and blank_label say the same; give one of them");
  }

  LayerTraits traits() const override {
    return {.min_bottoms = 2, .max_bottoms = 4, .num_tops = 1, .is_loss = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &scores = bottoms[0], &labels = bottoms.back();
    Require(scores.num_axes() >= 3 && scores.count(3) == 1, "bottom 0 has shape ", scores,
            "; scores are T x N x C (time, sequences, classes)");
    Require(labels.num_axes() >= 2 && labels.count(2) == 1 &&
                labels[bottoms.size() == 2 ? 0 : 1] == scores[1],
            "the labels have shape ", labels, "; with ", bottoms.size(), " bottoms they are ",
            bottoms.size() == 2 ? "N x L" : "L x N", " for N = ", scores[1], " sequences");
    if (bottoms.size() == 3) {
      Require(bottoms[1].count() == scores[0] * scores[1], "the indicators have shape ", bottoms[1],
              "; they must be T x N, ", scores[0], " x ", scores[1]);
    }
    for (size_t i = 1; bottoms.size() == 4 && i < 3; ++i) {
      Require(bottoms[i].count() == scores[1], "bottom ", i, " has shape ", bottoms[i],
              "; it must hold a length for each of ", scores[1], " sequences");
    }
    RequireSize("alphabet_size", options_.has_alphabet_size(), options_.alphabet_size(), scores[2],
                "classes");
    RequireSize("time_step", options_.has_time_step(), options_.time_step(), scores[0],
                "time steps");
    const int64_t blank = Blank(scores[2]);
    Require(blank >= 0 && blank < scores[2], "the blank is class ", blank, "; there are ",
            scores[2], " classes, so it must be one of 0..", scores[2] - 1);
    Require(options_.output_delay() < scores[0], "output_delay is ", options_.output_delay(),
            "; it must be below the ", scores[0], " time steps");
    return {Shape{}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs;
    for (int i = 0; i < graph.num_bottoms(); ++i) inputs.push_back(graph.bottom(i));
    const int64_t blank = Blank(graph.shape(graph.bottom(0))[2]);
    graph.Emit(
        ops::HostCall{
            .what = "ctc loss",
            .call = [options = options_, blank](
                        const KernelContext& ctx) { Run(options, static_cast<int>(blank), ctx); },
            .rounded_inputs = {0}},
        std::move(inputs), {graph.top(0), graph.with_backward() ? Gradient(graph) : nullptr});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::SavedGrad{}, {Gradient(graph), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  static void RequireSize(const char* field, bool is_given, int64_t given, int64_t found,
                          const char* what) {
    Require(!is_given || given == found, field, " is ", given, ", but bottom 0 has ", found, " ",
            what);
  }

  // By default, CTCLoss counts classes from the end, WarpCTC from the start.
  int64_t Blank(int64_t classes) const {
    if (options_.has_blank_label()) return options_.blank_label();
    if (type() != "CTCLoss" && !options_.has_blank_index()) return 0;
    return options_.blank_index() < 0 ? classes - 1 : options_.blank_index();
  }

  // The gradient for a loss weight of 1, which the forward pass computes as well.
  static Value* Gradient(GraphBuilder& graph) {
    return graph.Saved("gradient", graph.shape(graph.bottom(0)));
  }

  // Throws InvalidArgument unless the value is a whole number in 0..most.
  static int64_t Whole(double value, int64_t most, const char* what, int64_t sequence) {
    Require(value >= 0 && value <= static_cast<double>(most) && value == std::round(value), what,
            " ", value, " of sequence ", sequence, " must be a whole number in 0..", most);
    return static_cast<int64_t>(value);
  }

  static std::vector<Sequence> Sequences(const KernelContext& ctx, int blank) {
    const size_t bottoms = ctx.inputs.size();
    const Shape& shape = ctx.input(0).shape;
    const int64_t steps = shape[0], count = shape[1];
    const std::vector<double> labels = ValuesOf(ctx.input(static_cast<int>(bottoms) - 1));
    const int64_t rows = static_cast<int64_t>(labels.size()) / std::max<int64_t>(count, 1);
    std::vector<double> first, second;
    if (bottoms > 2) first = ValuesOf(ctx.input(1));
    if (bottoms > 3) second = ValuesOf(ctx.input(2));
    std::vector<Sequence> sequences(count);
    for (int64_t n = 0; n < count; ++n) {
      Sequence& one = sequences[n];
      one.length = bottoms == 4 ? Whole(first[n], steps, "the length", n) : steps;
      for (int64_t t = 1; bottoms == 3 && t < one.length; ++t) {
        if (std::round(first[t * count + n]) == 0) one.length = t;
      }
      const int64_t most = bottoms == 4 ? Whole(second[n], rows, "the number of labels", n) : rows;
      for (int64_t k = 0; k < most; ++k) {
        const double label = labels[bottoms == 2 ? n * rows + k : k * count + n];
        if (bottoms == 2 && label == blank) continue;
        if (label < 0 && std::fmod(label, 1) == 0) break;
        one.labels.push_back(static_cast<int>(Whole(label, shape[2] - 1, "label", n)));
      }
    }
    return sequences;
  }

  static void Run(const CTCLossParameter& options, int blank, const KernelContext& ctx) {
    const Shape& shape = ctx.input(0).shape;
    std::vector<Sequence> sequences = Sequences(ctx, blank);
    std::vector<bool> learns(shape[1]);
    for (int64_t n = 0; n < shape[1]; ++n)
      learns[n] = Learns(&sequences[n], n, shape[2], blank, options);
    if (ctx.has_output(1)) std::memset(ctx.output(1).data, 0, ctx.output(1).bytes());
    std::vector<double> losses(shape[1]);
    ForEachItem(shape[1], [&](int64_t n) {
      if (learns[n]) losses[n] = Learn(options, sequences[n], blank, n, ctx);
    });
    double loss = 0;
    for (const double one : losses) loss += one;
    loss /= static_cast<double>(std::max<int64_t>(shape[1], 1));
    CopyTensor({{ctx.output(0).shape, DType::kDouble, Layout::kPlain}, &loss}, ctx.output(0));
  }

  // Checks and completes a sequence. Returns false if its loss is 0 without a computation.
  static bool Learns(Sequence* sequence, int64_t n, int64_t classes, int blank,
                     const CTCLossParameter& options) {
    std::vector<int>& labels = sequence->labels;
    for (const int label : labels) {
      Require(label != blank, "label ", label, " of sequence ", n, " is the blank; it must be ",
              "another one of 0..", classes - 1);
    }
    if (options.preprocess_collapse_repeated()) {
      labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    }
    auto needed = static_cast<int64_t>(labels.size());
    for (size_t i = 1; options.ctc_merge_repeated() && i < labels.size(); ++i) {
      needed += labels[i] == labels[i - 1];  // equal labels need a blank in between
    }
    needed = std::max<int64_t>(needed, 1);
    const int64_t steps = sequence->length - options.output_delay();
    const bool fits = steps >= needed;
    Require(fits || sequence->length == 0 || options.zero_infinity(), "sequence ", n, " has ",
            steps, " time steps after output_delay; its ", labels.size(), " labels need at least ",
            needed, "; give fewer labels, or set zero_infinity, which leaves such sequences out");
    return fits;
  }

  // Returns the sequence's loss; writes its gradient divided by the number of sequences. A sequence
  // without any valid path has an infinite loss and no gradient.
  static double Learn(const CTCLossParameter& options, const Sequence& sequence, int blank,
                      int64_t n, const KernelContext& ctx) {
    const int64_t count = ctx.input(0).shape[1], classes = ctx.input(0).shape[2];
    const int64_t delay = options.output_delay(), steps = sequence.length - delay;
    const auto at = [&](int64_t t) { return ((t + delay) * count + n) * classes; };
    std::vector<double> log_y(steps * classes);  // logarithms of probabilities
    for (int64_t t = 0; t < steps; ++t) {
      double* row = &log_y[t * classes];
      ReadElements(ctx.input(0), at(t), classes, row);
      double normalizer = kLogZero;
      for (int64_t c = 0; c < classes; ++c) normalizer = LogAdd(normalizer, row[c]);
      for (int64_t c = 0; c < classes; ++c) {
        if (row[c] != kLogZero) row[c] -= normalizer;
      }
    }
    const Path path(sequence.labels, blank, options.ctc_merge_repeated());
    const Alignments alignments(path, steps,
                                [&](int64_t t, int64_t c) { return log_y[t * classes + c]; });
    const double log_of_all = alignments.LogOfAll();
    if (log_of_all == kLogZero && options.zero_infinity()) return 0;
    if (log_of_all == kLogZero || !ctx.has_output(1)) return -log_of_all;
    const double factor = 1 / static_cast<double>(count);
    for (int64_t t = 0; t < steps; ++t) {
      double* row = &log_y[t * classes];
      for (int64_t c = 0; c < classes; ++c) row[c] = factor * std::exp(row[c]);
      for (int64_t s = 0; s < path.size(); ++s) {
        row[path[s]] -= factor * std::exp(alignments.LogThrough(t, s) - log_of_all);
      }
      WriteElements(row, classes, ctx.output(1), at(t));
    }
    return -log_of_all;
  }

  const CTCLossParameter options_;
};

using WarpCTCLayer = CTCLossLayer;
using WarpCTCLossLayer = CTCLossLayer;
using CtcLossLayer = CTCLossLayer;

REGISTER_LAYER_CLASS(CTCLoss);
REGISTER_LAYER_CLASS(WarpCTC, "ctc_loss_param");
REGISTER_LAYER_CLASS(WarpCTCLoss, "ctc_loss_param");
REGISTER_LAYER_CLASS(CtcLoss, "ctc_loss_param");

}  // namespace
}  // namespace caffe
