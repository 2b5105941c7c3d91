#include <utility>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/gemm.hpp"

namespace caffe {
namespace {

// Products of the matrices in the last two axes of two bottoms, whose other axes must be equal.
// With transpose_a or transpose_b, the matrices of that bottom are transposed first.
class MatMulLayer final : public Layer {
 public:
  explicit MatMulLayer(const LayerParameter& param)
      : Layer(param),
        transposes_a_(param.matmul_param().transpose_a()),
        transposes_b_(param.matmul_param().transpose_b()) {}

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &a = bottoms[0], &b = bottoms[1];
    const int axes = a.num_axes();
    Require(axes >= 2 && b.num_axes() == axes, "the bottoms have shapes ", a, " and ", b,
            "; they must have the same number of axes, at least 2");
    for (int axis = 0; axis < axes - 2; ++axis) {
      Require(a[axis] == b[axis], "the bottoms have shapes ", a, " and ", b,
              "; all axes but the last two must be equal");
    }
    const int64_t inner = a[transposes_a_ ? -2 : -1], rows_of_b = b[transposes_b_ ? -1 : -2];
    Require(inner == rows_of_b, "the matrices of bottom 0 (", a, ") have ", inner,
            " columns, those of bottom 1 (", b, ") ", rows_of_b,
            " rows; they must be equal, or transposed by transpose_a or transpose_b");
    return {
        a.With(axes - 2, a[transposes_a_ ? -1 : -2]).With(axes - 1, b[transposes_b_ ? -2 : -1])};
  }

  void EmitForward(GraphBuilder& graph) const override {
    const Sizes sizes = SizesOf(graph);
    ForItems(graph, "y", graph.top(0), [&](int64_t item, Value* c) {
      Value* a = Item(graph, "a", graph.bottom(0), item);
      Value* b = Item(graph, "b", graph.bottom(1), item);
      EmitProduct(graph, false, {a, sizes.rows, transposes_a_}, {b, sizes.columns, transposes_b_},
                  sizes.inner, c);
    });
  }

  // With c = a b:  da = dc b^T and db = a^T dc, or their transposes if the bottom's are transposed.
  void EmitBackward(GraphBuilder& graph) const override {
    const Sizes sizes = SizesOf(graph);
    ForItems(graph, "da", graph.bottom_diff(0), [&](int64_t item, Value* da) {
      Value* b = Item(graph, "b_for_da", graph.bottom(1), item);
      Value* dc = Item(graph, "dc_for_da", graph.top_diff(0), item);
      EmitProduct(graph, transposes_a_, {dc, sizes.rows, false}, {b, sizes.inner, !transposes_b_},
                  sizes.columns, da);
    });
    ForItems(graph, "db", graph.bottom_diff(1), [&](int64_t item, Value* db) {
      Value* a = Item(graph, "a_for_db", graph.bottom(0), item);
      Value* dc = Item(graph, "dc_for_db", graph.top_diff(0), item);
      EmitProduct(graph, transposes_b_, {a, sizes.inner, !transposes_a_},
                  {dc, sizes.columns, false}, sizes.rows, db);
    });
  }

 private:
  struct Sizes {
    int64_t items, rows, columns, inner;
  };

  Sizes SizesOf(GraphBuilder& graph) const {
    const Shape &a = graph.shape(graph.bottom(0)), &c = graph.shape(graph.top(0));
    return {c.count(0, c.num_axes() - 2), c[-2], c[-1], a[transposes_a_ ? -2 : -1]};
  }

  // A matrix, and its dimension that remains in the product.
  struct Factor {
    Value* matrix;
    int64_t extent;
    bool is_transposed;
  };

  // c = a b or, with `transposed`, b^T a^T.
  static void EmitProduct(GraphBuilder& graph, bool transposed, Factor a, Factor b, int64_t inner,
                          Value* c) {
    if (transposed) {
      std::swap(a, b);
      a.is_transposed = !a.is_transposed;
      b.is_transposed = !b.is_transposed;
    }
    graph.Emit(ops::Gemm{.rows = a.extent,
                         .columns = b.extent,
                         .inner = inner,
                         .transpose_a = a.is_transposed,
                         .transpose_b = b.is_transposed},
               {a.matrix, b.matrix}, {c});
  }

  // One matrix of a bottom or of a gradient.
  static Value* Item(GraphBuilder& graph, const std::string& name, Value* all, int64_t item) {
    const Shape& shape = graph.shape(all);
    const Shape rows{shape.count(0, shape.num_axes() - 1), shape[-1]};
    Value* matrices = graph.Scratch(StrCat(name, "_rows", item), rows);
    graph.Emit(ops::View{}, {all}, {matrices});
    Value* matrix = graph.Scratch(StrCat(name, item), Shape{shape[-2], shape[-1]});
    graph.Emit(ops::SliceOf{.axis = 0, .offset = item * shape[-2]}, {matrices}, {matrix});
    return matrix;
  }

  // Calls emit(item, matrix) for each matrix of `all`, and concatenates the results.
  template <typename Emit>
  static void ForItems(GraphBuilder& graph, const std::string& name, Value* all, const Emit& emit) {
    if (all == nullptr) return;
    const Shape shape = graph.shape(all);
    const int64_t items = shape.count(0, shape.num_axes() - 2);
    std::vector<Value*> matrices;
    for (int64_t item = 0; item < items; ++item) {
      matrices.push_back(graph.Scratch(StrCat(name, item), Shape{shape[-2], shape[-1]}));
      emit(item, matrices.back());
    }
    Value* joined = graph.Scratch(name + "_joined", Shape{items * shape[-2], shape[-1]});
    graph.Emit(ops::Concat{.axis = 0}, matrices, {joined});
    graph.Emit(ops::View{}, {joined}, {all});
  }

  const bool transposes_a_, transposes_b_;
};

REGISTER_LAYER_CLASS(MatMul);

}  // namespace
}  // namespace caffe
