#include <algorithm>
#include <cmath>
#include <cstring>

#include "caffe/core/for_each_item.hpp"
#include "caffe/core/loss_estimates.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/class_scores.hpp"
#include "caffe/layers/detection/prior_matching.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/term_losses.hpp"

namespace caffe {
namespace {

// Computes the loss of one batch, and writes its gradients for a loss weight of 1 to outputs 1 and
// 2. Items are computed in parallel.
class Computation {
 public:
  Computation(const MultiBoxLossParameter& options, const LossParameter& loss,
              const KernelContext& ctx)
      : options_(options),
        loc_(ctx.input(0)),
        conf_(ctx.input(1)),
        dloc_(ctx.has_output(1) ? &ctx.output(1) : nullptr),
        dconf_(ctx.has_output(2) ? &ctx.output(2) : nullptr),
        priors_(ValuesOf(ctx.input(2))),
        items_(ctx.input(0).shape[0]),
        classes_(static_cast<int>(options.num_classes())),
        locations_(options.share_location() ? 1 : classes_),
        objects_(ObjectsOfItems(ValuesOf(ctx.input(3)))),
        found_(items_) {
    ForEachItem(items_, [this](int64_t item) { Choose(item); });
    const double divisor = Divisor(loss);
    ForEachItem(items_, [this, divisor](int64_t item) { Learn(item, divisor); });
    for (const Item& item : found_) {
      for (const double term : item.terms) loss_ += term;
    }
  }

  double loss() const { return loss_; }

 private:
  // A selected prior box of an item, as an object (not null) or as background.
  struct Chosen {
    size_t prior;
    const GroundTruth* object;
  };

  struct Item {
    size_t matched = 0;
    std::vector<Chosen> chosen;
    std::vector<double> terms;  // of the loss, in the order in which they are added
  };

  std::vector<std::vector<GroundTruth>> ObjectsOfItems(const std::vector<double>& truths) const {
    std::vector<std::vector<GroundTruth>> objects(items_);
    for (auto& [item, of_item] : GroundTruths(truths)) {
      if (item < items_) objects[item] = std::move(of_item);
    }
    return objects;
  }

  int background() const { return static_cast<int>(options_.background_label_id()); }
  bool is_softmax() const { return options_.conf_loss_type() == MultiBoxLossParameter::SOFTMAX; }
  ops::BoxCode code() const { return static_cast<ops::BoxCode>(options_.code_type()); }

  int ClassOf(const GroundTruth* object) const {
    if (object == nullptr) return background();
    return options_.map_object_to_agnostic() ? background() + 1 : object->label;
  }

  // Index of a box among those of all items.
  int64_t BoxIndex(int64_t item, size_t prior) const {
    return item * static_cast<int64_t>(priors_.boxes.size()) + static_cast<int64_t>(prior);
  }

  ops::BoxCodes CodesAt(int64_t index) const {
    ops::BoxCodes codes;
    ReadElements(loc_, index * 4, 4, codes.data());
    return codes;
  }

  ops::Box Predicted(int64_t item, size_t prior) const {
    return ops::Decode(CodesAt(BoxIndex(item, prior) * locations_), priors_.boxes[prior],
                       priors_.variances[prior], code(), !options_.encode_variance_in_target());
  }

  // The boxes that an item's prior boxes predict.
  std::vector<ops::Box> AllPredicted(int64_t item) const {
    std::vector<ops::Box> boxes;
    for (size_t i = 0; i < priors_.boxes.size(); ++i) boxes.push_back(Predicted(item, i));
    return boxes;
  }

  // Objects to be matched. An error for an invalid label names its item.
  const std::vector<GroundTruth>& Objects(int64_t item) {
    std::vector<GroundTruth>& objects = objects_[item];
    std::erase_if(objects, [&](const GroundTruth& one) {
      Require(one.label >= 0 && one.label < classes_, "label ", one.label, " of item ", item,
              " is outside 0..", classes_ - 1, "; check num_classes and the label map");
      return one.label == background() || (one.is_difficult && !options_.use_difficult_gt());
    });
    return objects;
  }

  void Choose(int64_t item) {
    const std::vector<GroundTruth>& objects = Objects(item);
    const size_t count = priors_.boxes.size();
    const Matches matches = options_.use_prior_for_matching()
                                ? Match(objects, priors_.boxes, options_)
                                : Match(objects, AllPredicted(item), options_);
    std::vector<size_t> positives, negatives;
    for (size_t i = 0; i < count; ++i) {
      if (matches.object[i] >= 0) positives.push_back(i);
    }
    switch (options_.mining_type()) {
      case MultiBoxLossParameter::NONE:
        for (size_t i = 0; i < count; ++i) {
          if (matches.object[i] == kUnmatched) negatives.push_back(i);
        }
        break;
      case MultiBoxLossParameter::MAX_NEGATIVE:
        for (size_t i = 0; i < count; ++i) {
          if (matches.object[i] == kUnmatched && !(matches.overlap[i] >= options_.neg_overlap()))
            negatives.push_back(i);
        }
        KeepHardest(item, static_cast<double>(options_.neg_pos_ratio()) * positives.size(),
                    &negatives);
        break;
      case MultiBoxLossParameter::HARD_EXAMPLE:
        Mine(item, matches, objects, &positives, &negatives);
        break;
    }
    Item& found = found_[item];
    found.matched = positives.size();
    found.chosen.reserve(positives.size() + negatives.size());
    for (const size_t i : positives) found.chosen.push_back({i, &objects[matches.object[i]]});
    for (const size_t i : negatives) found.chosen.push_back({i, nullptr});
  }

  // Keeps the `most` boxes with the largest losses as background, the largest first.
  void KeepHardest(int64_t item, double most, std::vector<size_t>* boxes) const {
    const int kept = static_cast<int>(most);
    if (kept == 0) return boxes->clear();
    if (is_softmax() && kept > 0) DropEasy(item, kept, boxes);
    ClassScores scores(classes_, is_softmax());
    std::vector<ops::ScoredBox> candidates;
    candidates.reserve(boxes->size());
    for (const size_t i : *boxes) {
      scores.Read(conf_, BoxIndex(item, i) * classes_);
      candidates.push_back({Hardness(scores.Loss(background())), static_cast<int64_t>(i)});
    }
    ops::KeepBest(&candidates, kept);
    boxes->clear();
    for (const ops::ScoredBox& one : candidates) boxes->push_back(one.index);
  }

  // Drops boxes that cannot be among the `kept` hardest, as estimates of their losses tell.
  void DropEasy(int64_t item, size_t kept, std::vector<size_t>* boxes) const {
    if (boxes->size() <= kept) return;
    const size_t count = priors_.boxes.size();
    std::vector<double> estimates(count), ranked;
    VisitFloat(conf_.dtype, [&]<typename T>(TypeTag<T>) {
      EstimateLosses(conf_.as<const T>() + BoxIndex(item, 0) * classes_,
                     static_cast<int64_t>(count), classes_, background(), estimates.data());
    });
    for (const size_t i : *boxes) {
      if (!std::isnan(estimates[i])) ranked.push_back(estimates[i]);
    }
    if (ranked.size() <= kept) return;
    std::nth_element(ranked.begin(), ranked.begin() + static_cast<int64_t>(kept) - 1, ranked.end(),
                     std::greater<>());
    // At least `kept` boxes have losses of ranked[kept - 1] less an error, or larger ones.
    const double least = ranked[kept - 1] - 2 * ErrorOfEstimates(classes_);
    std::erase_if(*boxes, [&](size_t i) { return estimates[i] < least; });
  }

  // Selects the boxes with the largest losses, after suppressing neighbours; all others are
  // dropped, also matched ones (Shrivastava et al. 2016).
  void Mine(int64_t item, const Matches& matches, const std::vector<GroundTruth>& objects,
            std::vector<size_t>* positives, std::vector<size_t>* negatives) const {
    ClassScores scores(classes_, is_softmax());
    std::vector<ops::ScoredBox> candidates;
    for (size_t i = 0; i < priors_.boxes.size(); ++i) {
      const int index = matches.object[i];
      if (index == kIgnored) continue;
      const GroundTruth* object = index >= 0 ? &objects[index] : nullptr;
      if (options_.ignore_difficult_gt() && object != nullptr && object->is_difficult) continue;
      scores.Read(conf_, BoxIndex(item, i) * classes_);
      double loss = scores.Loss(ClassOf(object));
      if (object != nullptr) loss += LocationLoss(item, {i, object});
      candidates.push_back({Hardness(loss), static_cast<int64_t>(i)});
    }
    if (options_.has_nms_param()) {
      ops::KeepBest(&candidates,
                    options_.nms_param().has_top_k() ? options_.nms_param().top_k() : -1);
      const auto suppress = [&](const std::vector<ops::Box>& boxes) {
        return ops::Suppress(candidates, boxes, options_.nms_param().nms_threshold(),
                             options_.nms_param().eta(), options_.sample_size());
      };
      candidates =
          options_.use_prior_for_nms() ? suppress(priors_.boxes) : suppress(AllPredicted(item));
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
        divisor = 0;
        for (const Item& item : found_) divisor += static_cast<double>(item.matched);
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

  int64_t LocationAt(int64_t item, const Chosen& one) const {
    return BoxIndex(item, one.prior) * locations_ +
           (options_.share_location() ? 0 : one.object->label);
  }

  // Location loss of a matched box; adds `factor` times its gradient.
  double LocationLoss(int64_t item, const Chosen& one, double factor = 0,
                      ops::BoxCodes* gradient = nullptr) const {
    const ops::Box& prior = priors_.boxes[one.prior];
    if (options_.bp_inside() && Predicted(item, one.prior).crosses_edge()) return 0;
    const bool divides = !options_.encode_variance_in_target();
    const ops::BoxCodes wanted =
        ops::Encode(one.object->box, prior, priors_.variances[one.prior], code(), divides);
    const ops::BoxCodes found = CodesAt(LocationAt(item, one));
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
      if (gradient != nullptr) (*gradient)[i] += factor * slope;
    }
    return loss;
  }

  // Computes the terms of an item's loss, and writes its gradients.
  void Learn(int64_t item, double divisor) {
    for (const TensorView* gradient : {dloc_, dconf_}) {
      if (gradient == nullptr) continue;
      const size_t bytes = gradient->bytes() / items_;
      std::memset(gradient->as<char>() + item * bytes, 0, bytes);
    }
    const double weight = options_.loc_weight() / divisor;
    ClassScores scores(classes_, is_softmax());
    std::vector<double> slopes(classes_);
    Item& found = found_[item];
    for (const Chosen& one : found.chosen) {
      if (one.object != nullptr) {
        ops::BoxCodes gradient{};
        found.terms.push_back(weight * LocationLoss(item, one, weight, &gradient));
        if (dloc_ != nullptr) WriteElements(gradient.data(), 4, *dloc_, LocationAt(item, one) * 4);
      }
      const int label = ClassOf(one.object);
      const int64_t at = BoxIndex(item, one.prior) * classes_;
      scores.Read(conf_, at);
      found.terms.push_back(scores.Loss(label) / divisor);
      if (dconf_ == nullptr) continue;
      std::ranges::fill(slopes, 0.0);
      scores.AddGradient(label, 1 / divisor, slopes.data());
      WriteElements(slopes.data(), classes_, *dconf_, at);
    }
  }

  const MultiBoxLossParameter& options_;
  const TensorView &loc_, &conf_;
  const TensorView *dloc_, *dconf_;  // null: not needed
  const PriorBoxes priors_;
  const int64_t items_;
  const int classes_, locations_;
  std::vector<std::vector<GroundTruth>> objects_;
  std::vector<Item> found_;
  double loss_ = 0;
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
    double value = Computation(options, loss, ctx).loss();
    if (!ctx.has_output(0)) return;
    CopyTensor({{ctx.output(0).shape, DType::kDouble, Layout::kPlain}, &value}, ctx.output(0));
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
