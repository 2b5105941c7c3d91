#include <memory>

#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/ops/class_losses.hpp"
#include "caffe/ops/constant.hpp"

namespace caffe {
namespace {

// Cross-entropy of softmax scores, weighted by a matrix of information gains: row l holds the
// weight of each class for label l. The matrix is bottom 2, or is read from the file `source`.
class InfogainLossLayer final : public LossLayer {
 public:
  explicit InfogainLossLayer(const LayerParameter& param) : LossLayer(param) {
    Require(!param.loss_param().has_normalize(),
            "loss_param { normalize } is not for this layer; use normalization");
    Require(
        !param.loss_param().weight_by_label_freqs(),
        "loss_param { weight_by_label_freqs } is not for this layer; put class_weighting on the "
        "infogain matrix's diagonal");
    WarnOfUnusedLossFields(param, {"ignore_label", "normalization", "weight_by_label_freqs"});
    if (param.bottom_size() > 2) return;
    Require(param.infogain_loss_param().has_source(),
            "needs a third bottom or infogain_loss_param { source } for the infogain matrix");
    BlobProto matrix;
    ReadBinaryProto(param.infogain_loss_param().source(), &matrix);
    matrix_ = std::make_shared<const std::vector<float>>(ReadBlobFloats(matrix));
  }

  LayerTraits traits() const override {
    return {.min_bottoms = 2, .max_bottoms = 3, .min_tops = 1, .max_tops = 2, .is_loss = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const int axis = Axis(bottoms[0]);
    RequireLabelPerPosition(bottoms[0], axis, bottoms[1]);
    const int64_t classes = bottoms[0][axis];
    const int64_t given = matrix_ ? static_cast<int64_t>(matrix_->size()) : bottoms.at(2).count();
    Require(given == classes * classes, "the infogain matrix has ", given, " elements; ", classes,
            " classes need ", classes * classes);
    std::vector<Shape> tops = {Shape{}};
    if (param().top_size() > 1) tops.push_back(bottoms[0]);
    return tops;
  }

  void EmitForward(GraphBuilder& graph) const override {
    const int axis = Axis(graph.shape(graph.bottom(0)));
    graph.Emit(ops::Softmax{.axis = axis}, {graph.bottom(0)}, {Probabilities(graph)});
    if (matrix_) graph.Emit(ops::Constant{matrix_}, {}, {Matrix(graph)});
    graph.Emit(ops::InfogainLoss{Rule(axis)},
               {Probabilities(graph), graph.bottom(1), Matrix(graph)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::InfogainLossGrad{Rule(Axis(graph.shape(graph.bottom(0))))},
               {Probabilities(graph), graph.bottom(1), Matrix(graph), graph.top_diff(0)},
               {graph.bottom_diff(0)});
  }

 private:
  int Axis(const Shape& scores) const {
    return scores.CanonicalAxis(param().infogain_loss_param().axis());
  }
  ops::LabelRule Rule(int axis) const {
    return ParseLabelRule(param().loss_param(), axis, ops::Normalization::kValid);
  }
  Value* Probabilities(GraphBuilder& graph) const {
    return graph.num_tops() > 1 ? graph.top(1)
                                : graph.Saved("probabilities", graph.shape(graph.bottom(0)));
  }
  Value* Matrix(GraphBuilder& graph) const {
    if (!matrix_) return graph.bottom(2);
    return graph.Saved("infogain", Shape{static_cast<int64_t>(matrix_->size())});
  }

  std::shared_ptr<const std::vector<float>> matrix_;  // null: use bottom 2
};

REGISTER_LAYER_CLASS(InfogainLoss, "loss_param");

}  // namespace
}  // namespace caffe
