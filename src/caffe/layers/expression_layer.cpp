#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/expression/formula_lowering.hpp"
#include "caffe/layers/expression/formula_terms.hpp"
#include "caffe/layers/expression/formula_tree.hpp"

namespace caffe {
namespace {

// The bottoms' names in the formula: x, y, z, x3, x4, ..., unless the file names them.
std::vector<std::string> FormulaNames(const LayerParameter& param) {
  const auto& given = param.expression_param().name();
  const int bottoms = param.bottom_size();
  Require(given.empty() || given.size() == bottoms, "there are ", given.size(), " names for ",
          bottoms, " bottoms; give each bottom a name, or none");
  std::vector<std::string> names(given.begin(), given.end());
  const std::string first[] = {"x", "y", "z"};
  for (int i = static_cast<int>(names.size()); i < bottoms; ++i)
    names.push_back(i < 3 ? first[i] : StrCat("x", i));
  return names;
}

// A formula of the bottoms, compiled into few ops: see expression/formula_lowering.hpp.
class ExpressionLayer final : public Layer {
 public:
  explicit ExpressionLayer(const LayerParameter& param)
      : Layer(param), tree_(WithContext("expr", [&] {
          return ParseFormula(param.expression_param().expr(), FormulaNames(param));
        })) {}

  LayerTraits traits() const override {
    return {.min_bottoms = 1,
            .max_bottoms = ops::kMaxFormulaOperands - 1,
            .num_tops = 1,
            .can_run_in_place = true};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    FormulaTerms terms;
    return {terms.shape(Add(&terms, bottoms))};
  }

  void EmitForward(GraphBuilder& graph) const override {
    FormulaTerms terms;
    const int result = Add(&terms, BottomShapes(graph));
    FormulaLowering lowering(terms, graph, Bottoms(graph), "forward");
    for (int i = 0; i < result; ++i) {
      if (IsKept(terms, i)) lowering.KeepIn(i, Kept(graph, terms, i));
    }
    lowering.Emit({{result, graph.top(0)}});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value* dtop = graph.top_diff(0);
    if (dtop == nullptr) return;
    FormulaTerms terms;
    const int result = Add(&terms, BottomShapes(graph)), first_of_backward = terms.size();
    const int num_bottoms = graph.num_bottoms();
    std::vector<bool> is_wanted;
    for (int i = 0; i < num_bottoms; ++i) is_wanted.push_back(graph.wants_bottom_diff(i));
    const int dresult = terms.Input(num_bottoms, terms.shape(result));
    const std::vector<int> gradients = FormulaGradients(terms, result, dresult, is_wanted);
    std::vector<Value*> inputs = Bottoms(graph);
    inputs.push_back(dtop);
    FormulaLowering lowering(terms, graph, inputs, "backward");
    for (int i = 0; i < first_of_backward; ++i) {
      if (IsKept(terms, i))
        lowering.SetValue(i, i == result ? graph.top(0) : Kept(graph, terms, i));
    }
    std::vector<FormulaResult> results;
    for (int i = 0; i < num_bottoms; ++i) {
      if (!is_wanted[static_cast<size_t>(i)]) continue;
      const int gradient = gradients[static_cast<size_t>(i)];
      if (gradient == dresult && graph.shape(dtop) == graph.shape(graph.bottom(i))) {
        graph.SetBottomDiff(i, dtop);
      } else {
        results.push_back({gradient < 0 ? terms.Number(0) : gradient, graph.bottom_diff(i)});
      }
    }
    if (!results.empty()) lowering.Emit(results);
  }

 private:
  int Add(FormulaTerms* terms, const std::vector<Shape>& bottoms) const {
    return WithContext("expr", [&] { return terms->Add(tree_, bottoms); });
  }
  static std::vector<Value*> Bottoms(GraphBuilder& graph) {
    std::vector<Value*> bottoms;
    for (int i = 0; i < graph.num_bottoms(); ++i) bottoms.push_back(graph.bottom(i));
    return bottoms;
  }
  static std::vector<Shape> BottomShapes(GraphBuilder& graph) {
    std::vector<Shape> shapes;
    for (Value* bottom : Bottoms(graph)) shapes.push_back(graph.shape(bottom));
    return shapes;
  }
  // Backward computes maxima again: it looks for elements that are equal to them, which it computes
  // in its own type.
  static bool IsKept(const FormulaTerms& terms, int term) {
    return terms[term].kind == FormulaTerm::Kind::kReduction &&
           terms[term].reduction != ops::AxesReduction::kMax;
  }
  // The result of a reduction in forward, which backward reads.
  static Value* Kept(GraphBuilder& graph, const FormulaTerms& terms, int reduction) {
    return graph.Saved(StrCat("reduction_", reduction), terms.shape(reduction));
  }

  const FormulaTree tree_;
};

REGISTER_LAYER_CLASS(Expression);

}  // namespace
}  // namespace caffe
