// Common base of the losses of YOLO's versions.
#pragma once

#include <vector>

#include "caffe/layers/loss_layer.hpp"
#include "caffe/layers/detection/yolo_head.hpp"
#include "caffe/ops/term_losses.hpp"
#include "caffe/ops/yolo_loss.hpp"

namespace caffe {

// Bottoms: a map (see YoloHead) and the ground truth, as rows per item (class, x, y, width, height)
// from MobileNet-YOLO's data layer, or as rows of all items from AnnotatedData (see
// ops::YoloLossOp). The loss is the sum over the map / N.
class YoloLossBase : public LossLayer {
 public:
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    YoloHead::RequireMap(bottoms[0], 0, options_.boxes, options_.classes);
    const Shape& labels = bottoms[1];
    const bool is_of_items = labels.num_axes() >= 2 && labels[0] == bottoms[0][0] &&
                             labels.count(1) > 0 && labels.count(1) % 5 == 0;
    Require(IsOfSsd(labels) || is_of_items, "bottom 1 has shape ", labels, "; it must hold ",
            bottoms[0][0],
            " times rows of 5 (class, x, y, width, height), or be 1x1xRx8 rows of "
            "an AnnotatedData layer");
    return {Shape{}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    const ops::YoloLossOp op = OpOf(graph);
    Value *map = graph.bottom(0), *labels = graph.bottom(1), *matches = Matches(graph);
    Value* terms = graph.Scratch("terms", graph.shape(map));
    graph.Emit(ops::YoloMatches(op), {map, labels}, {matches});
    graph.Emit(ops::YoloTerms(op), {map, labels, matches}, {terms});
    graph.Emit(ops::SumOfTerms{PerItem(graph)}, {terms}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::YoloGrad(OpOf(graph), PerItem(graph)),
               {graph.bottom(0), graph.bottom(1), Matches(graph), graph.top_diff(0)},
               {graph.bottom_diff(0)});
  }

 protected:
  using LossLayer::LossLayer;

  // Sets `number` boxes and `classes` classes; the anchors, in cells, are `biases` / `unit`.
  template <typename Biases>
  void SetBoxes(uint32_t number, uint32_t classes, const Biases& biases, float unit) {
    constexpr int kMost = ops::YoloLossOp::kMostAnchors;
    Require(classes > 0 && classes <= kMostClasses, "num_class is ", classes, "; it must be in 1..",
            kMostClasses);
    Require(number > 0 && number <= kMost, "num is ", number, "; it must be in 1..", kMost);
    Require(biases.size() > 0 && biases.size() % 2 == 0 && biases.size() <= 2 * kMost, "there are ",
            biases.size(), " biases; give a width and a height for each of at most ", kMost,
            " anchors");
    options_.boxes = static_cast<int>(number);
    options_.classes = static_cast<int>(classes);
    options_.anchors = biases.size() / 2;
    for (int i = 0; i < biases.size(); ++i) {
      Require(biases.Get(i) > 0, "bias ", i, " is ", biases.Get(i),
              "; widths and heights of anchors must be above 0");
      (i % 2 == 0 ? options_.widths : options_.heights)[i / 2] = biases.Get(i) / unit;
    }
  }

  ops::YoloLossOp options_;

 private:
  static constexpr uint32_t kMostClasses = 1 << 20;

  static bool IsOfSsd(const Shape& labels) {
    return labels.num_axes() == 4 && labels[0] == 1 && labels[1] == 1 && labels[3] == 8;
  }

  ops::YoloLossOp OpOf(GraphBuilder& graph) const {
    const Shape &map = graph.shape(graph.bottom(0)), &labels = graph.shape(graph.bottom(1));
    ops::YoloLossOp op = options_;
    op.height = static_cast<int>(map[2]);
    op.width = static_cast<int>(map[3]);
    op.is_of_ssd = IsOfSsd(labels);
    op.rows = static_cast<int>(op.is_of_ssd ? labels[2] : labels.count(1) / 5);
    return op;
  }
  Value* Matches(GraphBuilder& graph) const {
    const Shape& map = graph.shape(graph.bottom(0));
    return graph.Saved("matches", Shape{map[0], options_.boxes, map[2], map[3]});
  }
  static double PerItem(GraphBuilder& graph) {
    return 1 / static_cast<double>(graph.shape(graph.bottom(0))[0]);
  }
};

}  // namespace caffe
