#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/axis_matrix.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Sums or means along one axis, times `coeff`. The axis is removed or, with levels a, b, ..., holds
// one result for each run of a^2, b^2, ... elements: the parts of a pyramid. With `pos` the next
// axis must be as long as the run, and only the diagonal of their square is used.
class BatchReductionLayer final : public Layer {
 public:
  explicit BatchReductionLayer(const LayerParameter& param)
      : Layer(param), options_(param.batch_reduction_param()) {
    Require(is_mean() || options_.reduction_param().operation() == ReductionParameter::SUM,
            "operation is ",
            ReductionParameter::ReductionOp_Name(options_.reduction_param().operation()),
            "; only SUM and MEAN are supported");
    for (const int level : options_.level())
      Require(0 < level && level <= kMostLevel, "level is ", level, "; it must be in 1..",
              kMostLevel);
    Require(!options_.pos() || options_.level_size() <= 1, "pos is true, but there are ",
            options_.level_size(), " levels; leave out all but one");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& bottom = bottoms[0];
    const int axis = Axis(bottom);
    int64_t sum = 0;
    for (const int64_t run : Runs(bottom)) sum += run;
    Require(sum == bottom[axis], "the levels have ", sum, " parts, axis ", axis, " of shape ",
            bottom, " has ", bottom[axis], " elements; they must be equal");
    Require(!options_.pos() || (axis + 1 < bottom.num_axes() && bottom[axis + 1] == bottom[axis]),
            "pos needs two equal axes from axis ", axis, " on, got shape ", bottom);
    std::vector<int64_t> top(bottom.dims().begin(), bottom.dims().begin() + axis);
    if (!is_global()) top.push_back(options_.level_size());
    top.insert(top.end(), bottom.dims().begin() + EndAxis(bottom), bottom.dims().end());
    return {Shape(std::move(top))};
  }

  void EmitForward(GraphBuilder& graph) const override {
    const Shape bottom = graph.shape(graph.bottom(0));
    Value* x = graph.Scratch("x", Folded(bottom));
    Value* y = graph.Scratch("y", FoldedTop(bottom));
    graph.Emit(ops::View{}, {graph.bottom(0)}, {x});
    Matrix(bottom).Emit(graph, "reduced", 1, x, y);
    graph.Emit(ops::View{}, {y}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    if (!graph.wants_bottom_diff(0)) return;
    const Shape bottom = graph.shape(graph.bottom(0));
    Value* dx = graph.Scratch("dx", Folded(bottom));
    Value* dy = graph.Scratch("dy", FoldedTop(bottom));
    graph.Emit(ops::View{}, {graph.top_diff(0)}, {dy});
    Matrix(bottom).Transposed().Emit(graph, "dreduced", 1, dy, dx);
    graph.Emit(ops::View{}, {dx}, {graph.bottom_diff(0)});
  }

 private:
  static constexpr int kMostLevel = 46340;  // the largest whose square is an int

  bool is_mean() const {
    return options_.reduction_param().operation() == ReductionParameter::MEAN;
  }
  // Level 1 alone is the whole axis, of any length.
  bool is_global() const {
    return options_.level_size() == 0 || (options_.level_size() == 1 && options_.level(0) == 1);
  }
  int Axis(const Shape& bottom) const {
    return bottom.CanonicalAxis(options_.reduction_param().axis());
  }
  int EndAxis(const Shape& bottom) const { return Axis(bottom) + (options_.pos() ? 2 : 1); }

  // Number of elements in each result.
  std::vector<int64_t> Runs(const Shape& bottom) const {
    if (is_global()) return {bottom[Axis(bottom)]};
    std::vector<int64_t> runs;
    for (const int64_t level : options_.level()) runs.push_back(level * level);
    return runs;
  }

  // The bottom with the axes before, in, and after the reduction folded to one each.
  Shape Folded(const Shape& bottom) const {
    const int axis = Axis(bottom), end = EndAxis(bottom);
    return Shape{bottom.count(0, axis), bottom.count(axis, end), bottom.count(end)};
  }
  Shape FoldedTop(const Shape& bottom) const {
    return Folded(bottom).With(1, static_cast<int64_t>(Runs(bottom).size()));
  }

  AxisMatrix Matrix(const Shape& bottom) const {
    AxisMatrix matrix(Folded(bottom)[1]);
    int64_t begin = 0;
    for (const int64_t run : Runs(bottom)) {
      const double weight =
          options_.reduction_param().coeff() / (is_mean() ? static_cast<double>(run) : 1);
      std::vector<AxisMatrix::Tap> taps;
      for (int64_t i = 0; i < run; ++i)
        taps.push_back({begin + i * (options_.pos() ? run + 1 : 1), weight});
      matrix.AddRow(taps);
      begin += run;
    }
    return matrix;
  }

  const BatchReductionParameter options_;
};

REGISTER_LAYER_CLASS(BatchReduction);

}  // namespace
}  // namespace caffe
