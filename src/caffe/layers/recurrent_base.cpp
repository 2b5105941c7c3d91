#include "caffe/layers/recurrent_base.hpp"

#include <utility>

#include "caffe/error.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe {
namespace {

// The same elements as a matrix.
Value* Matrix(GraphBuilder& graph, const std::string& name, Value* value, int64_t rows,
              int64_t columns) {
  const Shape shape{rows, columns};
  if (graph.shape(value) == shape) return value;
  Value* matrix = graph.Scratch(name, shape);
  graph.Emit(ops::View{}, {value}, {matrix});
  return matrix;
}

}  // namespace

RecurrentBase::RecurrentBase(const LayerParameter& param, const char* field,
                             RecurrentParameter options)
    : Layer(param), options_(std::move(options)) {
  Require(options_.num_output() > 0, "num_output is ", options_.num_output(), "; set ", field,
          " { num_output } to at least 1");
}

LayerTraits RecurrentBase::traits() const {
  const int states = exposes_states() ? num_states() : 0;
  return {.min_bottoms = has_cont() ? 2 + states : 1,
          .max_bottoms = 3 + states,
          .num_tops = 1 + states};
}

std::vector<Shape> RecurrentBase::InferTopShapes(const std::vector<Shape>& bottoms) const {
  const Shape& x = bottoms[0];
  Require(x.num_axes() >= 2, "bottom 0 has shape ", x, "; it must be T x N x ...");
  Require(x[0] > 0, "bottom 0 has shape ", x, "; there must be a step in time");
  RequireSteps(x[0]);
  if (has_cont()) {
    Require(bottoms[1] == (Shape{x[0], x[1]}), "bottom 1 has shape ", bottoms[1], "; it must be ",
            x[0], "x", x[1], ", one number for each step and item of bottom 0");
  }
  if (has_static_input()) {
    Require(bottoms[2].num_axes() >= 1 && bottoms[2][0] == x[1], "bottom 2 has shape ", bottoms[2],
            "; it must begin with the ", x[1], " items of bottom 0");
  }
  std::vector<Shape> tops = {Shape{x[0], x[1], width()}};
  const Shape state{1, x[1], width()};
  for (int i = 0; exposes_states() && i < num_states(); ++i) {
    const Shape& given = bottoms[first_state_bottom() + i];
    Require(given == state, "bottom ", first_state_bottom() + i, " has shape ", given,
            "; a state must be ", state);
    tops.push_back(state);
  }
  return tops;
}

void RecurrentBase::RequireSteps(int64_t steps) {
  // Each step is about ten ops, and planning time grows slightly faster than their number.
  constexpr int64_t kMost = 10000;
  Require(
      steps <= kMost, "there are ", steps, " steps in time; at most ", kMost,
      " can be unrolled, so cut sequences into parts of one batch each (cont 1 carries the state "
      "on)");
}

RecurrentBase::Sizes RecurrentBase::SizesOf(const std::vector<Shape>& bottoms) const {
  const Shape& x = bottoms[0];
  return {x[0], x[1], x.count(2), has_static_input() ? bottoms[2].count(1) : 0};
}

RecurrentBase::Sizes RecurrentBase::SizesOf(GraphBuilder& graph) const {
  std::vector<Shape> bottoms;
  for (int i = 0; i < graph.num_bottoms(); ++i) bottoms.push_back(graph.shape(graph.bottom(i)));
  return SizesOf(bottoms);
}

Value* RecurrentBase::InputProducts(GraphBuilder& graph, int64_t columns) const {
  const InputParams params = input_params();
  const Sizes sizes = SizesOf(graph);
  const int64_t rows = sizes.steps * sizes.items;
  Value* x = Matrix(graph, "x", graph.bottom(0), rows, sizes.inputs);
  Value* products = Times(graph, "x_products", x, graph.param(params.weights), rows, columns,
                          sizes.inputs, graph.param(params.bias));
  if (!has_static_input()) return products;
  Value* fixed = Matrix(graph, "x_static", graph.bottom(2), sizes.items, sizes.static_inputs);
  Value* once = Times(graph, "static_products", fixed, graph.param(params.static_weights),
                      sizes.items, columns, sizes.static_inputs);
  Value* repeated = graph.Scratch("static_repeated", Shape{rows, columns});
  graph.Emit(ops::Tile{.axis = 0, .tiles = sizes.steps}, {once}, {repeated});
  return Sum(graph, "products", {products, repeated});
}

void RecurrentBase::InputProductsGrad(GraphBuilder& graph, int64_t columns,
                                      Value* dproducts) const {
  const InputParams params = input_params();
  const Sizes sizes = SizesOf(graph);
  const int64_t rows = sizes.steps * sizes.items;
  Value* x = Matrix(graph, "x_again", graph.bottom(0), rows, sizes.inputs);
  WeightsGrad(graph, dproducts, x, graph.param_diff(params.weights), rows, columns, sizes.inputs);
  graph.Emit(ops::SumToAxes{{.axis = 1, .num_axes = 1}}, {dproducts},
             {graph.param_diff(params.bias)});
  if (graph.wants_bottom_diff(0)) {
    Value* dx =
        TimesGrad(graph, "dx", dproducts, graph.param(params.weights), rows, columns, sizes.inputs);
    graph.Emit(ops::View{}, {dx}, {graph.bottom_diff(0)});
  }
  if (!has_static_input()) return;
  Value* dfixed = graph.Scratch("dstatic", Shape{sizes.items, columns});
  graph.Emit(ops::TileGrad{.axis = 0, .tiles = sizes.steps}, {dproducts}, {dfixed});
  Value* fixed = Matrix(graph, "x_static_again", graph.bottom(2), sizes.items, sizes.static_inputs);
  WeightsGrad(graph, dfixed, fixed, graph.param_diff(params.static_weights), sizes.items, columns,
              sizes.static_inputs);
  if (graph.wants_bottom_diff(2)) {
    Value* dx = TimesGrad(graph, "dx_static", dfixed, graph.param(params.static_weights),
                          sizes.items, columns, sizes.static_inputs);
    graph.Emit(ops::View{}, {dx}, {graph.bottom_diff(2)});
  }
}

Value* RecurrentBase::Step(GraphBuilder& graph, const std::string& name, Value* all, int64_t step,
                           int64_t columns) const {
  const int64_t items = SizesOf(graph).items;
  Value* rows = graph.Scratch(StrCat(name, step), Shape{items, columns});
  graph.Emit(ops::SliceOf{.axis = 0, .offset = step * items}, {all}, {rows});
  return rows;
}

Value* RecurrentBase::Cont(GraphBuilder& graph, int64_t step) const {
  return graph.Saved(StrCat("cont", step), Shape{SizesOf(graph).items});
}

void RecurrentBase::LoadCont(GraphBuilder& graph, int64_t step) const {
  if (!has_cont()) {
    graph.Emit(ops::Fill{step == 0 ? 0.0 : 1.0}, {}, {Cont(graph, step)});
    return;
  }
  Value* row = graph.Scratch(StrCat("cont_row", step), Shape{1, SizesOf(graph).items});
  graph.Emit(ops::SliceOf{.axis = 0, .offset = step}, {graph.bottom(1)}, {row});
  graph.Emit(ops::View{}, {row}, {Cont(graph, step)});
}

Value* RecurrentBase::Join(GraphBuilder& graph, const std::string& name,
                           const std::vector<Value*>& steps, int64_t columns) const {
  const Sizes sizes = SizesOf(graph);
  Value* all = graph.Scratch(name, Shape{sizes.steps * sizes.items, columns});
  graph.Emit(ops::Concat{.axis = 0}, steps, {all});
  return all;
}

Value* RecurrentBase::InitialState(GraphBuilder& graph, int state) const {
  return graph.Saved(StrCat("initial", state), Shape{SizesOf(graph).items, width()});
}

void RecurrentBase::LoadInitialState(GraphBuilder& graph, int state) const {
  Value* initial = InitialState(graph, state);
  if (!has_cont()) {
    graph.Emit(ops::Fill{0}, {}, {initial});
    return;
  }
  if (exposes_states()) {
    graph.Emit(ops::View{}, {graph.bottom(first_state_bottom() + state)}, {initial});
    return;
  }
  // Copied, because the state itself is overwritten before backward reads it.
  graph.Emit(ops::ScaleBy{1}, {graph.State(StrCat("carried", state), graph.shape(initial))},
             {initial});
}

void RecurrentBase::KeepState(GraphBuilder& graph, int state, Value* value) const {
  const int64_t items = SizesOf(graph).items;
  if (exposes_states()) {
    graph.Emit(ops::View{}, {value}, {graph.top(1 + state)});
  } else if (has_cont()) {
    graph.Emit(ops::ScaleBy{1}, {value},
               {graph.State(StrCat("carried", state), Shape{items, width()})});
  }
}

Value* RecurrentBase::Times(GraphBuilder& graph, const std::string& name, Value* a, Value* weights,
                            int64_t rows, int64_t columns, int64_t inner, Value* bias) {
  Value* c = graph.Scratch(name, Shape{rows, columns});
  std::vector<Value*> inputs = {a, weights};
  if (bias != nullptr) inputs.push_back(bias);
  graph.Emit(ops::Gemm{.rows = rows, .columns = columns, .inner = inner, .transpose_b = true},
             inputs, {c});
  return c;
}

Value* RecurrentBase::TimesGrad(GraphBuilder& graph, const std::string& name, Value* dc,
                                Value* weights, int64_t rows, int64_t columns, int64_t inner) {
  Value* da = graph.Scratch(name, Shape{rows, inner});
  graph.Emit(ops::Gemm{.rows = rows, .columns = inner, .inner = columns}, {dc, weights}, {da});
  return da;
}

void RecurrentBase::WeightsGrad(GraphBuilder& graph, Value* dc, Value* a, Value* dweights,
                                int64_t rows, int64_t columns, int64_t inner) {
  graph.Emit(ops::Gemm{.rows = columns, .columns = inner, .inner = rows, .transpose_a = true},
             {dc, a}, {dweights});
}

Value* RecurrentBase::ScaleItems(GraphBuilder& graph, const std::string& name, Value* x,
                                 Value* factors) {
  Value* y = graph.Scratch(name, graph.shape(x));
  graph.Emit(ops::ScaleShift{kItems}, {x, factors}, {y});
  return y;
}

Value* RecurrentBase::Sum(GraphBuilder& graph, const std::string& name,
                          const std::vector<Value*>& parts) {
  std::vector<Value*> present;
  for (Value* part : parts) {
    if (part != nullptr) present.push_back(part);
  }
  if (present.size() == 1) return present[0];
  Value* sum = graph.Scratch(name, graph.shape(present[0]));
  graph.Emit(ops::EltwiseSum{}, present, {sum});
  return sum;
}

}  // namespace caffe
