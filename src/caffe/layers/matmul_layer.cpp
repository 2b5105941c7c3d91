#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/gemm.hpp"

namespace caffe {
namespace {

// The pairs of matrices that a layer multiplies: extents of the axes before the last two, and the
// steps along them (see BatchedGemm) in bottom 0, bottom 1 and the top.
struct Pairs {
  std::vector<int64_t> batch;
  std::array<std::vector<int64_t>, 3> steps;
};

// Products of the matrices in the last two axes of two bottoms. With transpose_a or transpose_b,
// the matrices of that bottom are transposed first. The axes before them are broadcast: an axis of
// 1, or one that a bottom does not have, uses the same matrix for all of the other bottom's.
class MatMulLayer final : public Layer {
 public:
  explicit MatMulLayer(const LayerParameter& param)
      : Layer(param),
        transposes_a_(param.matmul_param().transpose_a()),
        transposes_b_(param.matmul_param().transpose_b()) {}

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &a = bottoms[0], &b = bottoms[1];
    Require(a.num_axes() >= 2 && b.num_axes() >= 2, "the bottoms have shapes ", a, " and ", b,
            "; they must have at least 2 axes");
    const int64_t inner = a[transposes_a_ ? -2 : -1], rows_of_b = b[transposes_b_ ? -1 : -2];
    Require(inner == rows_of_b, "the matrices of bottom 0 (", a, ") have ", inner,
            " columns, those of bottom 1 (", b, ") ", rows_of_b,
            " rows; they must be equal, or transposed by transpose_a or transpose_b");
    std::vector<int64_t> extents;
    for (int axis = std::max(a.num_axes(), b.num_axes()); axis > 2; --axis) {
      const int64_t of_a = ExtentOr1(a, axis), of_b = ExtentOr1(b, axis);
      Require(of_a == of_b || of_a == 1 || of_b == 1, "the bottoms have shapes ", a, " and ", b,
              "; before the last two axes they must have equal axes, or axes of 1");
      extents.push_back(of_a == 1 ? of_b : of_a);
    }
    extents.push_back(a[transposes_a_ ? -1 : -2]);
    extents.push_back(b[transposes_b_ ? -2 : -1]);
    return {Shape(extents)};
  }

  void EmitForward(GraphBuilder& graph) const override {
    const Sizes sizes = SizesOf(graph);
    EmitProduct(graph, PairsOf(graph), false, {0, graph.bottom(0), sizes.rows, transposes_a_},
                {1, graph.bottom(1), sizes.columns, transposes_b_}, sizes.inner, 2, graph.top(0));
  }

  // With c = a b:  da = dc b^T and db = a^T dc, or their transposes if the bottom's are transposed.
  void EmitBackward(GraphBuilder& graph) const override {
    const Sizes sizes = SizesOf(graph);
    const Pairs pairs = PairsOf(graph);
    if (Value* da = graph.bottom_diff(0)) {
      EmitProduct(graph, pairs, transposes_a_, {2, graph.top_diff(0), sizes.rows, false},
                  {1, graph.bottom(1), sizes.inner, !transposes_b_}, sizes.columns, 0, da);
    }
    if (Value* db = graph.bottom_diff(1)) {
      EmitProduct(graph, pairs, transposes_b_, {0, graph.bottom(0), sizes.inner, !transposes_a_},
                  {2, graph.top_diff(0), sizes.columns, false}, sizes.rows, 1, db);
    }
  }

 private:
  struct Sizes {
    int64_t rows, columns, inner;
  };
  // Matrices, whose steps are pairs.steps[role], and the dimension that remains in the product.
  struct Factor {
    size_t role;
    Value* matrices;
    int64_t extent;
    bool is_transposed;
  };

  // The extent of an axis, counted from the last one, which is 1.
  static int64_t ExtentOr1(const Shape& shape, int axis) {
    return axis <= shape.num_axes() ? shape[-axis] : 1;
  }

  Sizes SizesOf(GraphBuilder& graph) const {
    const Shape &a = graph.shape(graph.bottom(0)), &c = graph.shape(graph.top(0));
    return {c[-2], c[-1], a[transposes_a_ ? -2 : -1]};
  }

  // From the last axis to the first; axes that all operands pass by the same steps become one.
  static Pairs PairsOf(GraphBuilder& graph) {
    const std::array<Shape, 3> shapes = {graph.shape(graph.bottom(0)), graph.shape(graph.bottom(1)),
                                         graph.shape(graph.top(0))};
    Pairs pairs;
    std::array<int64_t, 3> matrices = {1, 1, 1};
    for (int axis = 3; axis <= shapes[2].num_axes(); ++axis) {
      const int64_t extent = shapes[2][-axis];
      if (extent == 1) continue;
      std::array<int64_t, 3> steps;
      bool continues = !pairs.batch.empty();
      for (size_t i = 0; i < 3; ++i) {
        steps[i] = ExtentOr1(shapes[i], axis) == 1 ? 0 : matrices[i];
        matrices[i] *= ExtentOr1(shapes[i], axis);
        continues = continues && steps[i] == (pairs.steps[i].front() == 0
                                                  ? 0
                                                  : pairs.steps[i].front() * pairs.batch.front());
      }
      if (continues) {
        pairs.batch.front() *= extent;
        continue;
      }
      pairs.batch.insert(pairs.batch.begin(), extent);
      for (size_t i = 0; i < 3; ++i) pairs.steps[i].insert(pairs.steps[i].begin(), steps[i]);
    }
    return pairs;
  }

  // c = a b or, with `transposed`, b^T a^T, for each pair.
  static void EmitProduct(GraphBuilder& graph, const Pairs& pairs, bool transposed, Factor a,
                          Factor b, int64_t inner, size_t role_of_c, Value* c) {
    if (transposed) {
      std::swap(a, b);
      a.is_transposed = !a.is_transposed;
      b.is_transposed = !b.is_transposed;
    }
    const std::vector<int64_t>&a_steps = pairs.steps[a.role], &b_steps = pairs.steps[b.role],
          &c_steps = pairs.steps[role_of_c];
    const auto are = [&](int64_t of_a, int64_t of_b, int64_t of_c) {
      return pairs.batch.size() == 1 && a_steps[0] == of_a && b_steps[0] == of_b &&
             c_steps[0] == of_c;
    };
    // The matrices of one factor, one below the other, are one matrix if the other factor is the
    // same for all of them; so are both factors if all products are added up.
    const bool is_tall = are(1, 0, 1) && !a.is_transposed;
    const bool is_deep = are(1, 1, 0) && a.is_transposed && !b.is_transposed;
    if (pairs.batch.empty() || is_tall || is_deep) {
      graph.Emit(ops::Gemm{.rows = a.extent * (is_tall ? pairs.batch[0] : 1),
                           .columns = b.extent,
                           .inner = inner * (is_deep ? pairs.batch[0] : 1),
                           .transpose_a = a.is_transposed,
                           .transpose_b = b.is_transposed},
                 {a.matrices, b.matrices}, {c});
      return;
    }
    graph.Emit(ops::BatchedGemm{.rows = a.extent,
                                .columns = b.extent,
                                .inner = inner,
                                .transpose_a = a.is_transposed,
                                .transpose_b = b.is_transposed,
                                .batch = pairs.batch,
                                .a_steps = a_steps,
                                .b_steps = b_steps,
                                .c_steps = c_steps},
               {a.matrices, b.matrices}, {c});
  }

  const bool transposes_a_, transposes_b_;
};

REGISTER_LAYER_CLASS(MatMul);

}  // namespace
}  // namespace caffe
