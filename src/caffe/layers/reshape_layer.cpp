#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Replaces axes [axis, axis + num_axes) by `shape`: 0 copies the bottom's extent, -1 is inferred.
class ReshapeLayer final : public Layer {
 public:
  explicit ReshapeLayer(const LayerParameter& param)
      : Layer(param), options_(param.reshape_param()) {
    int inferred = 0;
    for (const int64_t dim : options_.shape().dim()) {
      Require(dim >= -1, "shape has the dimension ", dim,
              "; use -1 to infer, 0 to copy, or a size");
      inferred += dim == -1;
    }
    Require(inferred <= 1, "shape has ", inferred, " dimensions of -1; only one can be inferred");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(param().top(0) != param().bottom(0),
            "cannot run in place; give top another name than '", param().bottom(0), "'");
    const Shape& bottom = bottoms[0];
    const int axes = bottom.num_axes();
    const int start = options_.axis() >= 0 ? options_.axis() : axes + options_.axis() + 1;
    Require(0 <= start && start <= axes, "axis ", options_.axis(), " is out of range for shape ",
            bottom);
    Require(options_.num_axes() >= -1, "num_axes is ", options_.num_axes(), "; use -1 or more");
    const int count = options_.num_axes() == -1 ? axes - start : options_.num_axes();
    Require(count <= axes - start, "axis ", start, " + num_axes ", count, " goes beyond the ", axes,
            " axes of shape ", bottom);
    const int end = start + count;
    return {Shape(Dimensions(bottom, start, end))};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::View{}, {graph.bottom(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::View{}, {graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  std::vector<int64_t> Dimensions(const Shape& bottom, int start, int end) const {
    std::vector<int64_t> dims(bottom.dims().begin(), bottom.dims().begin() + start);
    int inferred = -1;
    for (int i = 0; i < options_.shape().dim_size(); ++i) {
      int64_t dim = options_.shape().dim(i);
      if (dim == 0) {
        Require(start + i < bottom.num_axes(), "dimension ", i, " is 0 (copy) but shape ", bottom,
                " has no axis ", start + i);
        dim = bottom[start + i];
      } else if (dim == -1) {
        inferred = static_cast<int>(dims.size());
        dim = 1;
      }
      dims.push_back(dim);
    }
    dims.insert(dims.end(), bottom.dims().begin() + end, bottom.dims().end());
    const int64_t count = Shape(dims).count();
    if (inferred >= 0) {
      Require(count > 0 && bottom.count() % count == 0,
              "the dimension of -1 cannot be inferred: ", bottom.count(), " elements of shape ",
              bottom, " are not divisible by ", count);
      dims[inferred] = bottom.count() / count;
    }
    Require(Shape(dims).count() == bottom.count(), "shape ", Shape(dims), " has ",
            Shape(dims).count(), " elements, the bottom (", bottom, ") has ", bottom.count(),
            "; change a dim, or let one be inferred (dim: -1)");
    return dims;
  }

  const ReshapeParameter options_;
};

REGISTER_LAYER_CLASS(Reshape);

}  // namespace
}  // namespace caffe
