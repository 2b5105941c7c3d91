#include "caffe/layers/expression/formula_layer.hpp"

#include "caffe/error.hpp"
#include "caffe/graph_builder.hpp"
#include "caffe/layers/expression/formula_lowering.hpp"

namespace caffe {
namespace {

std::vector<Value*> BottomsOf(GraphBuilder& graph) {
  std::vector<Value*> bottoms;
  for (int i = 0; i < graph.num_bottoms(); ++i) bottoms.push_back(graph.bottom(i));
  return bottoms;
}

std::vector<Shape> ShapesOfBottoms(GraphBuilder& graph) {
  std::vector<Shape> shapes;
  for (Value* bottom : BottomsOf(graph)) shapes.push_back(graph.shape(bottom));
  return shapes;
}

// Backward computes maxima again: it looks for elements that are equal to them, which it computes
// in its own type.
bool IsKeptReduction(const FormulaTerms& terms, int term) {
  return terms[term].kind == FormulaTerm::Kind::kReduction &&
         terms[term].reduction != ops::AxesReduction::kMax;
}

// The result of a reduction in forward, which backward reads.
Value* KeptReduction(GraphBuilder& graph, const FormulaTerms& terms, int reduction) {
  return graph.Saved(StrCat("reduction_", reduction), terms.shape(reduction));
}

}  // namespace

std::vector<Shape> FormulaLayer::InferTopShapes(const std::vector<Shape>& bottoms) const {
  FormulaTerms terms;
  return {terms.shape(Add(&terms, bottoms))};
}

void FormulaLayer::EmitForward(GraphBuilder& graph) const {
  FormulaTerms terms;
  const int result = Add(&terms, ShapesOfBottoms(graph));
  FormulaLowering lowering(terms, graph, BottomsOf(graph), "forward");
  for (int i = 0; i < result; ++i) {
    if (IsKeptReduction(terms, i)) lowering.KeepIn(i, KeptReduction(graph, terms, i));
  }
  lowering.Emit({{result, graph.top(0)}});
}

void FormulaLayer::EmitBackward(GraphBuilder& graph) const {
  Value* dtop = graph.top_diff(0);
  if (dtop == nullptr) return;
  FormulaTerms terms;
  const int result = Add(&terms, ShapesOfBottoms(graph)), first_of_backward = terms.size();
  const int num_bottoms = graph.num_bottoms();
  std::vector<bool> is_wanted;
  for (int i = 0; i < num_bottoms; ++i) is_wanted.push_back(graph.wants_bottom_diff(i));
  const int dresult = terms.Input(num_bottoms, terms.shape(result));
  const std::vector<int> gradients = FormulaGradients(terms, result, dresult, is_wanted);
  std::vector<Value*> inputs = BottomsOf(graph);
  inputs.push_back(dtop);
  FormulaLowering lowering(terms, graph, inputs, "backward");
  for (int i = 0; i < first_of_backward; ++i) {
    if (IsKeptReduction(terms, i))
      lowering.SetValue(i, i == result ? graph.top(0) : KeptReduction(graph, terms, i));
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

int FormulaLayer::Add(FormulaTerms* terms, const std::vector<Shape>& bottoms) const {
  return WithContext("expr", [&] { return terms->Add(tree_, bottoms); });
}

}  // namespace caffe
