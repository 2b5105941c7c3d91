#include <algorithm>
#include <cmath>

#include "caffe/core/for_each_item.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/prior_matching.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/box_losses.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/term_losses.hpp"

namespace caffe {
namespace {

// The layer's sizes and options, as its ops need them.
struct BoxLoss {
  MultiBoxLossParameter options;
  int64_t items, priors;

  int classes() const { return static_cast<int>(options.num_classes()); }
  int background() const { return static_cast<int>(options.background_label_id()); }
  bool is_softmax() const { return options.conf_loss_type() == MultiBoxLossParameter::SOFTMAX; }
  bool is_mined(MultiBoxLossParameter::MiningType type) const {
    return options.mining_type() == type;
  }
  bool reads_locations() const {
    return !options.use_prior_for_matching() || options.bp_inside() ||
           is_mined(MultiBoxLossParameter::HARD_EXAMPLE);
  }
  ops::BoxLocations locations(double weight) const {
    return {priors, options.share_location() ? 1 : classes(), options.encode_variance_in_target(),
            options.loc_loss_type() == MultiBoxLossParameter::L2, weight};
  }
};

// The host's part: chooses what each prior box learns. Items are computed in parallel.
class Choosing {
 public:
  // Inputs: priors, ground truth; with MAX_NEGATIVE the losses of all boxes as background; if
  // reads_locations() the locations; with HARD_EXAMPLE the scores.
  Choosing(const BoxLoss& of, const KernelContext& ctx)
      : of_(of),
        options_(of.options),
        prior_values_(ValuesOf(ctx.input(0))),
        priors_(prior_values_),
        objects_(ObjectsOfItems(ValuesOf(ctx.input(1)))),
        choices_(of.items * of.priors * ops::kChoices),
        matched_(of.items) {
    int next = 2;
    if (of.is_mined(MultiBoxLossParameter::MAX_NEGATIVE)) losses_ = ValuesOf(ctx.input(next++));
    if (of.reads_locations()) loc_ = ValuesOf(ctx.input(next++));
    if (of.is_mined(MultiBoxLossParameter::HARD_EXAMPLE)) scores_ = ValuesOf(ctx.input(next));
    ForEachItem(of.items, [this](int64_t item) { Choose(item); });
  }

  const std::vector<double>& choices() const { return choices_; }
  double Divisor(const LossParameter& loss) const {
    double divisor = 1;
    const LossParameter::NormalizationMode mode =
        loss.has_normalization() ? loss.normalization()
        : loss.has_normalize()
            ? (loss.normalize() ? LossParameter::VALID : LossParameter::BATCH_SIZE)
            : LossParameter::VALID;
    switch (mode) {
      case LossParameter::FULL:
        divisor = static_cast<double>(of_.items) * static_cast<double>(of_.priors);
        break;
      case LossParameter::VALID:
        divisor = 0;
        for (const size_t matched : matched_) divisor += static_cast<double>(matched);
        break;
      case LossParameter::BATCH_SIZE:
        divisor = static_cast<double>(of_.items);
        break;
      case LossParameter::PRE_FIXED:
        divisor = loss.pre_fixed_normalizer();
        break;
      case LossParameter::NONE:
        break;
    }
    return std::max(divisor, 1.0);
  }

 private:
  std::vector<std::vector<GroundTruth>> ObjectsOfItems(const std::vector<double>& truths) const {
    std::vector<std::vector<GroundTruth>> objects(of_.items);
    for (auto& [item, of_item] : GroundTruths(truths)) {
      if (item < of_.items) objects[item] = std::move(of_item);
    }
    return objects;
  }

  ops::BoxCode code() const { return static_cast<ops::BoxCode>(options_.code_type()); }
  // Codes are divided by the variance.
  bool divides() const { return !options_.encode_variance_in_target(); }

  // Index of a box among those of all items.
  int64_t BoxIndex(int64_t item, size_t prior) const {
    return item * of_.priors + static_cast<int64_t>(prior);
  }

  // `location`: of a class, where each has its own.
  ops::Box Predicted(int64_t item, size_t prior, int location = 0) const {
    const int64_t locations = options_.share_location() ? 1 : of_.classes();
    return ops::Decode(CodesAt(loc_, BoxIndex(item, prior) * locations + location),
                       priors_.boxes[prior], priors_.variances[prior], code(), divides());
  }
  std::vector<ops::Box> AllPredicted(int64_t item) const {
    std::vector<ops::Box> boxes;
    for (size_t i = 0; i < priors_.boxes.size(); ++i) boxes.push_back(Predicted(item, i));
    return boxes;
  }

  // Objects to be matched. An error for an invalid label names its item.
  const std::vector<GroundTruth>& Objects(int64_t item) {
    std::vector<GroundTruth>& objects = objects_[item];
    std::erase_if(objects, [&](const GroundTruth& one) {
      Require(one.label >= 0 && one.label < of_.classes(), "label ", one.label, " of item ", item,
              " is outside 0..", of_.classes() - 1, "; check num_classes and the label map");
      return one.label == of_.background() || (one.is_difficult && !options_.use_difficult_gt());
    });
    return objects;
  }

  void Choose(int64_t item) {
    for (size_t i = 0; i < priors_.boxes.size(); ++i) Leave(item, i);
    const std::vector<GroundTruth>& objects = Objects(item);
    const Matches matches = options_.use_prior_for_matching()
                                ? Match(objects, priors_.boxes, options_)
                                : Match(objects, AllPredicted(item), options_);
    if (of_.is_mined(MultiBoxLossParameter::HARD_EXAMPLE)) return Mine(item, matches, objects);
    std::vector<ops::ScoredBox> negatives;
    for (size_t i = 0; i < matches.object.size(); ++i) {
      if (matches.object[i] >= 0) {
        Learn(item, i, &objects[matches.object[i]]);
        ++matched_[item];
      } else if (matches.object[i] == kUnmatched) {
        negatives.push_back({0, static_cast<int64_t>(i)});
      }
    }
    if (of_.is_mined(MultiBoxLossParameter::MAX_NEGATIVE)) KeepHardest(item, matches, &negatives);
    for (const ops::ScoredBox& one : negatives) Learn(item, one.index, nullptr);
  }

  void KeepHardest(int64_t item, const Matches& matches,
                   std::vector<ops::ScoredBox>* negatives) const {
    std::erase_if(*negatives, [&](const ops::ScoredBox& one) {
      return matches.overlap[one.index] >= options_.neg_overlap();
    });
    for (ops::ScoredBox& one : *negatives) one.score = Hardness(losses_[BoxIndex(item, one.index)]);
    const double most =
        static_cast<double>(options_.neg_pos_ratio()) * static_cast<double>(matched_[item]);
    ops::KeepBest(negatives, static_cast<int>(most));
  }

  // Selects the boxes with the largest losses, after suppressing neighbours; all others are
  // dropped, also matched ones (Shrivastava et al. 2016).
  void Mine(int64_t item, const Matches& matches, const std::vector<GroundTruth>& objects) {
    const ops::BoxLosses losses(of_.classes(), of_.is_softmax(), of_.locations(1));
    std::vector<ops::ScoredBox> candidates;
    for (size_t i = 0; i < priors_.boxes.size(); ++i) {
      const int index = matches.object[i];
      if (index == kIgnored) continue;
      const GroundTruth* const object = index >= 0 ? &objects[index] : nullptr;
      if (options_.ignore_difficult_gt() && object != nullptr && object->is_difficult) continue;
      Learn(item, i, object);
      const double loss =
          losses.Element<double>(BoxIndex(item, i), scores_, choices_, loc_, prior_values_);
      candidates.push_back({Hardness(loss), static_cast<int64_t>(i)});
    }
    std::vector<ops::ScoredBox> kept = candidates;
    if (options_.has_nms_param()) {
      ops::KeepBest(&kept, options_.nms_param().has_top_k() ? options_.nms_param().top_k() : -1);
      kept = ops::Suppress(kept, options_.use_prior_for_nms() ? priors_.boxes : AllPredicted(item),
                           options_.nms_param().nms_threshold(), options_.nms_param().eta());
    }
    ops::KeepBest(&kept, options_.sample_size());
    for (const ops::ScoredBox& one : candidates) Leave(item, one.index);
    for (const ops::ScoredBox& one : kept) {
      const int index = matches.object[one.index];
      Learn(item, one.index, index >= 0 ? &objects[index] : nullptr);
      matched_[item] += static_cast<size_t>(index >= 0);
    }
  }

  double* Row(int64_t item, size_t prior) {
    return &choices_[BoxIndex(item, prior) * ops::kChoices];
  }
  void Leave(int64_t item, size_t prior) {
    Row(item, prior)[ops::kClass] = Row(item, prior)[ops::kLocation] = -1;
  }
  // A box learns an object, or to be background.
  void Learn(int64_t item, size_t prior, const GroundTruth* object) {
    double* const row = Row(item, prior);
    row[ops::kClass] = object == nullptr                   ? of_.background()
                       : options_.map_object_to_agnostic() ? of_.background() + 1
                                                           : object->label;
    if (object == nullptr) return;
    const int location = options_.share_location() ? 0 : object->label;
    if (options_.bp_inside() && Predicted(item, prior, location).crosses_edge()) return;
    row[ops::kLocation] = location;
    const ops::BoxCodes codes =
        ops::Encode(object->box, priors_.boxes[prior], priors_.variances[prior], code(), divides());
    std::ranges::copy(codes, row + ops::kCodes);
  }

  const BoxLoss& of_;
  const MultiBoxLossParameter& options_;
  const std::vector<double> prior_values_;
  const PriorBoxes priors_;
  std::vector<std::vector<GroundTruth>> objects_;
  std::vector<double> losses_, loc_, scores_;  // those that are read
  std::vector<double> choices_;                // rows of ops::BoxChoice
  std::vector<size_t> matched_;                // of each item
};

// SSD's loss (Liu et al. 2016): prior boxes are matched with objects; matched boxes learn location
// and class, and the hardest of the others learn to be background. The host chooses the boxes, the
// device computes losses and gradients. Bottoms: loc (N, priors x 4), conf (N, priors x classes),
// priors, ground truth (rows of 8).
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
    Require(bottoms[0][0] == bottoms[1][0], "bottoms 0 and 1 have shapes ", bottoms[0], " and ",
            bottoms[1], "; they must have as many items");
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
    const BoxLoss of = LossOf(graph);
    const Shape boxes{of.items, of.priors};
    std::vector<Value*> read = {graph.bottom(2), graph.bottom(3)};
    if (of.is_mined(MultiBoxLossParameter::MAX_NEGATIVE)) {
      read.push_back(graph.Scratch("losses", boxes, SavedAs::kExact));
      graph.Emit(ops::BoxClassLosses(of.classes(), of.is_softmax(), of.background()),
                 {graph.bottom(1)}, {read.back()});
    }
    if (of.reads_locations()) read.push_back(graph.bottom(0));
    if (of.is_mined(MultiBoxLossParameter::HARD_EXAMPLE)) read.push_back(graph.bottom(1));
    graph.Emit(ops::HostCall{.what = "multibox loss",
                             .call = [of, loss = param().loss_param()](
                                         const KernelContext& ctx) { Run(of, loss, ctx); },
                             .rounded_inputs = {2, 3, 4}},
               read, {Choices(graph, of), Divisor(graph)});
    Value* const terms = graph.Scratch("terms", boxes, SavedAs::kExact);
    graph.Emit(ops::BoxLosses(of.classes(), of.is_softmax(), of.locations(options_.loc_weight())),
               {graph.bottom(1), Choices(graph, of), graph.bottom(0), graph.bottom(2)}, {terms});
    graph.Emit(ops::SumOfTerms{}, {terms, Divisor(graph)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const BoxLoss of = LossOf(graph);
    graph.Emit(
        ops::BoxLocationsGrad{of.locations(options_.loc_weight())},
        {graph.bottom(0), Choices(graph, of), graph.bottom(2), Divisor(graph), graph.top_diff(0)},
        {graph.bottom_diff(0)});
    graph.Emit(ops::BoxScoresGrad(of.classes(), of.is_softmax()),
               {graph.bottom(1), Choices(graph, of), Divisor(graph), graph.top_diff(0)},
               {graph.bottom_diff(1)});
  }

  bool AllowForceBackward(int bottom) const override { return bottom < 2; }

 private:
  static void Run(const BoxLoss& of, const LossParameter& loss, const KernelContext& ctx) {
    const Choosing choosing(of, ctx);
    const double divisor = choosing.Divisor(loss);
    const auto store = [&](int output, const double* values) {
      const TensorView& view = ctx.output(output);
      CopyTensor({{view.shape, DType::kDouble, Layout::kPlain}, const_cast<double*>(values)}, view);
    };
    store(0, choosing.choices().data());
    store(1, &divisor);
  }

  BoxLoss LossOf(GraphBuilder& graph) const {
    return {options_, graph.shape(graph.bottom(0))[0], graph.shape(graph.bottom(2)).count() / 8};
  }
  static Value* Choices(GraphBuilder& graph, const BoxLoss& of) {
    return graph.Saved("choices", Shape{of.items, of.priors, ops::kChoices});
  }
  static Value* Divisor(GraphBuilder& graph) { return graph.Saved("divisor", Shape{}); }

  MultiBoxLossParameter options_;
};

REGISTER_LAYER_CLASS(MultiBoxLoss, "loss_param");

}  // namespace
}  // namespace caffe
