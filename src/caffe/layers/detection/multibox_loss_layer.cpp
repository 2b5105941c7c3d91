#include <algorithm>
#include <cmath>

#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/detection_blobs.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/term_losses.hpp"

namespace caffe {
namespace {

constexpr int kUnmatched = -1;
constexpr int kIgnored = -2;

// The result of matching the prior boxes of one item: for each, the index of its object or one of
// the constants above, and its largest overlap with any object.
struct Matches {
  std::vector<int> object;
  std::vector<double> overlap;
};

// Greedy bipartite matching, so that each object has a box; then (PER_PREDICTION) every other box
// with enough overlap is matched with its best object.
Matches Match(const std::vector<GroundTruth>& objects, const std::vector<ops::Box>& boxes,
              const MultiBoxLossParameter& options) {
  constexpr double kLeastOverlap = 1e-6;
  Matches matches{std::vector<int>(boxes.size(), kUnmatched), std::vector<double>(boxes.size(), 0)};
  std::vector<std::vector<double>> overlaps(boxes.size(), std::vector<double>(objects.size(), 0));
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (options.ignore_cross_boundary_bbox() && boxes[i].crosses_edge()) {
      matches.object[i] = kIgnored;
      continue;
    }
    for (size_t k = 0; k < objects.size(); ++k) {
      const double overlap = ops::Overlap(boxes[i], objects[k].box);
      if (overlap <= kLeastOverlap) continue;
      overlaps[i][k] = overlap;
      matches.overlap[i] = std::max(matches.overlap[i], overlap);
    }
  }
  std::vector<bool> is_matched(objects.size(), false);
  for (size_t round = 0; round < objects.size(); ++round) {
    double best = 0;
    size_t best_box = 0, best_object = 0;
    for (size_t i = 0; i < boxes.size(); ++i) {
      if (matches.object[i] != kUnmatched) continue;
      for (size_t k = 0; k < objects.size(); ++k) {
        if (!is_matched[k] && overlaps[i][k] > best) {
          best = overlaps[i][k], best_box = i, best_object = k;
        }
      }
    }
    if (best <= 0) break;
    matches.object[best_box] = static_cast<int>(best_object);
    matches.overlap[best_box] = best;
    is_matched[best_object] = true;
  }
  if (options.match_type() == MultiBoxLossParameter::BIPARTITE) return matches;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (matches.object[i] != kUnmatched) continue;
    double best = 0;
    for (size_t k = 0; k < objects.size(); ++k) {
      if (overlaps[i][k] < options.overlap_threshold() || overlaps[i][k] <= best) continue;
      best = overlaps[i][k];
      matches.object[i] = static_cast<int>(k);
    }
  }
  return matches;
}

// The class loss of one prior box's scores, and its gradient.
class ClassLoss {
 public:
  ClassLoss(const double* scores, int classes, bool is_softmax)
      : scores_(scores), classes_(classes), is_softmax_(is_softmax) {
    largest_ = *std::max_element(scores, scores + classes);
    for (int c = 0; c < classes; ++c) sum_ += std::exp(scores[c] - largest_);
  }

  double Loss(int label) const {
    if (is_softmax_) return std::log(sum_) + largest_ - scores_[label];
    double loss = 0;
    for (int c = 0; c < classes_; ++c) {
      const double x = scores_[c], t = c == label;
      loss += std::log1p(std::exp(-std::abs(x))) - x * (t - static_cast<double>(x >= 0));
    }
    return loss;
  }

  void AddGradient(int label, double factor, double* gradient) const {
    for (int c = 0; c < classes_; ++c) {
      const double x = scores_[c];
      const double p = is_softmax_ ? std::exp(x - largest_) / sum_ : 0.5 * std::tanh(0.5 * x) + 0.5;
      gradient[c] += factor * (p - static_cast<double>(c == label));
    }
  }

 private:
  const double* scores_;
  int classes_;
  bool is_softmax_;
  double largest_ = 0, sum_ = 0;
};

// Computes the loss of one batch, and its gradients for a loss weight of 1.
class Computation {
 public:
  Computation(const MultiBoxLossParameter& options, const LossParameter& loss,
              const KernelContext& ctx)
      : options_(options),
        loc_(ValuesOf(ctx.input(0))),
        conf_(ValuesOf(ctx.input(1))),
        priors_(ValuesOf(ctx.input(2))),
        truths_(GroundTruths(ValuesOf(ctx.input(3)))),
        items_(ctx.input(0).shape[0]),
        classes_(static_cast<int>(options.num_classes())),
        locations_(options.share_location() ? 1 : classes_),
        dloc_(loc_.size()),
        dconf_(conf_.size()) {
    for (int64_t item = 0; item < items_; ++item) FindItem(item);
    const double divisor = Divisor(loss);
    for (const Chosen& one : chosen_) Add(one, divisor);
  }

  double loss() const { return loss_; }
  const std::vector<double>& dloc() const { return dloc_; }
  const std::vector<double>& dconf() const { return dconf_; }

 private:
  // A selected prior box of an item, as an object (not null) or as background.
  struct Chosen {
    int64_t item;
    size_t prior;
    const GroundTruth* object;
  };

  int ClassOf(const GroundTruth& object) const {
    return options_.map_object_to_agnostic() ? static_cast<int>(options_.background_label_id()) + 1
                                             : object.label;
  }

  ops::Box Predicted(int64_t item, size_t prior) const {
    return ops::Decode(CodesAt(loc_, (item * priors_.boxes.size() + prior) * locations_),
                       priors_.boxes[prior], priors_.variances[prior], code(),
                       !options_.encode_variance_in_target());
  }
  ops::BoxCode code() const { return static_cast<ops::BoxCode>(options_.code_type()); }

  ClassLoss Scores(int64_t item, size_t prior) const {
    return {&conf_[(item * priors_.boxes.size() + prior) * classes_], classes_,
            options_.conf_loss_type() == MultiBoxLossParameter::SOFTMAX};
  }

  // Objects to be matched. An error for an invalid label names its item.
  std::vector<GroundTruth>& Objects(int64_t item) {
    std::vector<GroundTruth>& objects = truths_[static_cast<int>(item)];
    std::erase_if(objects, [&](const GroundTruth& one) {
      Require(one.label >= 0 && one.label < classes_, "label ", one.label, " of item ", item,
              " is outside 0..", classes_ - 1, "; check num_classes and the label map");
      const bool is_background = one.label == static_cast<int>(options_.background_label_id());
      return is_background || (one.is_difficult && !options_.use_difficult_gt());
    });
    return objects;
  }

  void FindItem(int64_t item) {
    const std::vector<GroundTruth>& objects = Objects(item);
    const size_t count = priors_.boxes.size();
    std::vector<ops::Box> boxes = priors_.boxes;
    if (!options_.use_prior_for_matching()) {
      for (size_t i = 0; i < count; ++i) boxes[i] = Predicted(item, i);
    }
    const Matches matches = Match(objects, boxes, options_);
    std::vector<size_t> positives, negatives;
    for (size_t i = 0; i < count; ++i) {
      if (matches.object[i] >= 0) positives.push_back(i);
    }
    const auto class_of = [&](size_t i) {
      return matches.object[i] >= 0 ? ClassOf(objects[matches.object[i]])
                                    : static_cast<int>(options_.background_label_id());
    };
    switch (options_.mining_type()) {
      case MultiBoxLossParameter::NONE:
        for (size_t i = 0; i < count; ++i) {
          if (matches.object[i] == kUnmatched) negatives.push_back(i);
        }
        break;
      case MultiBoxLossParameter::MAX_NEGATIVE: {
        std::vector<ops::ScoredBox> candidates;
        for (size_t i = 0; i < count; ++i) {
          if (matches.object[i] != kUnmatched || matches.overlap[i] >= options_.neg_overlap())
            continue;
          candidates.push_back(
              {Hardness(Scores(item, i).Loss(class_of(i))), static_cast<int64_t>(i)});
        }
        const double most = static_cast<double>(options_.neg_pos_ratio()) * positives.size();
        ops::KeepBest(&candidates, static_cast<int>(most));
        for (const ops::ScoredBox& one : candidates) negatives.push_back(one.index);
        break;
      }
      case MultiBoxLossParameter::HARD_EXAMPLE:
        Mine(item, matches, objects, class_of, &positives, &negatives);
        break;
    }
    matched_ += positives.size();
    for (const size_t i : positives) chosen_.push_back({item, i, &objects[matches.object[i]]});
    for (const size_t i : negatives) chosen_.push_back({item, i, nullptr});
  }

  // Selects the boxes with the largest losses, after suppressing neighbours; all others are
  // dropped, also matched ones (Shrivastava et al. 2016).
  template <typename ClassFn>
  void Mine(int64_t item, const Matches& matches, const std::vector<GroundTruth>& objects,
            const ClassFn& class_of, std::vector<size_t>* positives,
            std::vector<size_t>* negatives) const {
    std::vector<ops::ScoredBox> candidates;
    std::vector<ops::Box> boxes = priors_.boxes;
    for (size_t i = 0; i < boxes.size(); ++i) {
      const int object = matches.object[i];
      if (object == kIgnored) continue;
      if (options_.ignore_difficult_gt() && object >= 0 && objects[object].is_difficult) continue;
      double loss = Scores(item, i).Loss(class_of(i));
      if (object >= 0) loss += LocationLoss({item, i, &objects[object]}, 0);
      candidates.push_back({Hardness(loss), static_cast<int64_t>(i)});
      if (!options_.use_prior_for_nms()) boxes[i] = Predicted(item, i);
    }
    if (options_.has_nms_param()) {
      ops::KeepBest(&candidates,
                    options_.nms_param().has_top_k() ? options_.nms_param().top_k() : -1);
      candidates = ops::Suppress(candidates, boxes, options_.nms_param().nms_threshold(),
                                 options_.nms_param().eta());
    }
    ops::KeepBest(&candidates, options_.sample_size());
    positives->clear();
    for (const ops::ScoredBox& one : candidates) {
      (matches.object[one.index] >= 0 ? positives : negatives)->push_back(one.index);
    }
  }

  double Divisor(const LossParameter& loss) const {
    double divisor = 1;
    const LossParameter::NormalizationMode mode =
        loss.has_normalization() ? loss.normalization()
        : loss.has_normalize()
            ? (loss.normalize() ? LossParameter::VALID : LossParameter::BATCH_SIZE)
            : LossParameter::VALID;
    switch (mode) {
      case LossParameter::FULL:
        divisor = static_cast<double>(items_) * static_cast<double>(priors_.boxes.size());
        break;
      case LossParameter::VALID:
        divisor = static_cast<double>(matched_);
        break;
      case LossParameter::BATCH_SIZE:
        divisor = static_cast<double>(items_);
        break;
      case LossParameter::PRE_FIXED:
        divisor = loss.pre_fixed_normalizer();
        break;
      case LossParameter::NONE:
        break;
    }
    return std::max(divisor, 1.0);
  }

  // Location loss of a matched box; adds `factor` times its gradient.
  double LocationLoss(const Chosen& one, double factor,
                      std::vector<double>* gradient = nullptr) const {
    const ops::Box& prior = priors_.boxes[one.prior];
    const int slot = options_.share_location() ? 0 : one.object->label;
    const size_t at = (one.item * priors_.boxes.size() + one.prior) * locations_ + slot;
    if (options_.bp_inside() && Predicted(one.item, one.prior).crosses_edge()) return 0;
    const bool divides = !options_.encode_variance_in_target();
    const ops::BoxCodes wanted =
        ops::Encode(one.object->box, prior, priors_.variances[one.prior], code(), divides);
    const ops::BoxCodes found = CodesAt(loc_, at);
    double loss = 0;
    for (int i = 0; i < 4; ++i) {
      // Codes that include the variance are compared as if they were divided by it. The gradient of
      // that division, 1 / variance, is omitted, as in SSD's Caffe and NVCaffe: with it the
      // learning rates of their recipes would be 5 to 10 times too high for locations.
      const double d = (found[i] - wanted[i]) / (divides ? 1 : priors_.variances[one.prior][i]);
      const bool is_square =
          options_.loc_loss_type() == MultiBoxLossParameter::L2 || std::abs(d) < 1;
      loss += is_square ? d * d / 2 : std::abs(d) - 0.5;
      const double slope = is_square ? d : d / std::abs(d);  // NaN stays NaN
      if (gradient != nullptr) (*gradient)[at * 4 + i] += factor * slope;
    }
    return loss;
  }

  void Add(const Chosen& one, double divisor) {
    if (one.object != nullptr) {
      const double weight = options_.loc_weight() / divisor;
      loss_ += weight * LocationLoss(one, weight, &dloc_);
    }
    const int label = one.object != nullptr ? ClassOf(*one.object)
                                            : static_cast<int>(options_.background_label_id());
    const ClassLoss scores = Scores(one.item, one.prior);
    loss_ += scores.Loss(label) / divisor;
    scores.AddGradient(label, 1 / divisor,
                       &dconf_[(one.item * priors_.boxes.size() + one.prior) * classes_]);
  }

  const MultiBoxLossParameter& options_;
  const std::vector<double> loc_, conf_;
  const PriorBoxes priors_;
  std::map<int, std::vector<GroundTruth>> truths_;
  const int64_t items_;
  const int classes_, locations_;
  std::vector<Chosen> chosen_;
  size_t matched_ = 0;
  double loss_ = 0;
  std::vector<double> dloc_, dconf_;
};

// SSD's loss (Liu et al. 2016): prior boxes are matched with objects; matched boxes learn location
// and class, and the hardest of the others learn to be background. Bottoms: loc (N, priors x 4),
// conf (N, priors x classes), priors, ground truth (rows of 8).
class MultiBoxLossLayer final : public Layer {
 public:
  explicit MultiBoxLossLayer(const LayerParameter& param)
      : Layer(param), options_(param.multibox_loss_param()) {
    WarnOfUnusedLossFields(param, {"normalize", "normalization"});
    Require(options_.num_classes() >= 1, "multibox_loss_param { num_classes } is missing");
    const bool is_agnostic = options_.map_object_to_agnostic();
    Require(int64_t{options_.background_label_id()} + is_agnostic < options_.num_classes(),
            "background_label_id ", options_.background_label_id(),
            is_agnostic ? " and the class of all objects after it do" : " does",
            " not fit into num_classes ", options_.num_classes());
    if (options_.has_do_neg_mining() && !options_.has_mining_type()) {
      options_.set_mining_type(options_.do_neg_mining() ? MultiBoxLossParameter::MAX_NEGATIVE
                                                        : MultiBoxLossParameter::NONE);
    }
    Require(options_.mining_type() == MultiBoxLossParameter::NONE || options_.share_location(),
            "mining_type other than NONE needs share_location: true");
    Require(options_.share_location() || options_.use_prior_for_matching(),
            "share_location: false needs use_prior_for_matching: true");
  }

  LayerTraits traits() const override { return {.num_bottoms = 4, .num_tops = 1, .is_loss = true}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const int64_t priors = bottoms[2].count() / 8;
    const int64_t classes = options_.num_classes();
    const int64_t locations = options_.share_location() ? 1 : classes;
    Require(bottoms[0].count(1) == priors * locations * 4, "bottom 0 has shape ", bottoms[0], "; ",
            priors, " prior boxes need ", priors * locations * 4, " numbers per item");
    Require(bottoms[1].count(1) == priors * classes, "bottom 1 has shape ", bottoms[1], "; ",
            priors, " prior boxes of ", classes, " classes need ", priors * classes,
            " scores per item");
    Require(bottoms[3].num_axes() == 4 && bottoms[3][3] == 8, "bottom 3 has shape ", bottoms[3],
            "; the ground truth is rows of 8");
    return {Shape{}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::HostCall{.what = "multibox loss",
                             .call = [options = options_, loss = param().loss_param()](
                                         const KernelContext& ctx) { Run(options, loss, ctx); }},
               {graph.bottom(0), graph.bottom(1), graph.bottom(2), graph.bottom(3)},
               {graph.top(0), Gradient(graph, 0), Gradient(graph, 1)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    for (const int i : {0, 1}) {
      graph.Emit(ops::SavedGrad{}, {Gradient(graph, i), graph.top_diff(0)}, {graph.bottom_diff(i)});
    }
  }

  bool AllowForceBackward(int bottom) const override { return bottom < 2; }

 private:
  static void Run(const MultiBoxLossParameter& options, const LossParameter& loss,
                  const KernelContext& ctx) {
    const Computation computation(options, loss, ctx);
    const double value = static_cast<double>(computation.loss());
    const auto store = [&](int output, const double* values) {
      if (!ctx.has_output(output)) return;
      const TensorView& view = ctx.output(output);
      CopyTensor({{view.shape, DType::kDouble, Layout::kPlain}, const_cast<double*>(values)}, view);
    };
    store(0, &value);
    store(1, computation.dloc().data());
    store(2, computation.dconf().data());
  }

  // The gradient for a loss weight of 1, which the forward pass computes as well.
  static Value* Gradient(GraphBuilder& graph, int bottom) {
    if (!graph.with_backward()) return nullptr;
    return graph.Saved(bottom == 0 ? "dloc" : "dconf", graph.shape(graph.bottom(bottom)));
  }

  MultiBoxLossParameter options_;
};

REGISTER_LAYER_CLASS(MultiBoxLoss, "loss_param");

}  // namespace
}  // namespace caffe
