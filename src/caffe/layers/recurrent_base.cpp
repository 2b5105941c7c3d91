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

constexpr uint32_t kMostLayers = 1000;

// The same elements as a matrix.
Value* Matrix(GraphBuilder& graph, const std::string& name, Value* value, int64_t rows,
              int64_t columns) {
  const Shape shape{rows, columns};
  if (graph.shape(value) == shape) return value;
  Value* matrix = graph.Scratch(name, shape);
  graph.Emit(ops::View{}, {value}, {matrix});
  return matrix;
}

// The sum of the values, or the only one.
Value* SumOf(GraphBuilder& graph, const std::string& name, const std::vector<Value*>& values) {
  if (values.size() == 1) return values[0];
  Value* sum = graph.Scratch(name, graph.shape(values[0]));
  graph.Emit(ops::EltwiseSum{}, values, {sum});
  return sum;
}

}  // namespace

RecurrentBase::RecurrentBase(const LayerParameter& param, const char* field,
                             RecurrentParameter options)
    : Layer(param), options_(std::move(options)) {
  Require(options_.num_output() > 0, "num_output is ", options_.num_output(), "; set ", field,
          " { num_output } to at least 1");
  Require(options_.num_layers() >= 1 && options_.num_layers() <= kMostLayers, "num_layers is ",
          options_.num_layers(), "; it must be from 1 to ", kMostLayers);
  Require(options_.projection_size() < options_.num_output(), "projection_size is ",
          options_.projection_size(), ", but num_output is ", options_.num_output(),
          "; a projection must make the hidden state narrower: give less than num_output, or leave "
          "it out");
  Require(
      options_.expose_hidden() || !options_.backprop_states(),
      "backprop_states is true, but no states are bottoms and tops; set expose_hidden, or leave "
      "it out");
}

LayerTraits RecurrentBase::traits() const {
  const int states = exposes_states() ? num_states() : 0;
  return {.min_bottoms = has_cont() ? 2 + states : 1,
          .max_bottoms = 3 + states,
          .num_tops = 1 + states};
}

std::vector<Shape> RecurrentBase::InferTopShapes(const std::vector<Shape>& bottoms) const {
  Require(can_project() || options().projection_size() == 0, "projection_size is ",
          options().projection_size(), ", but only LSTM has projections; leave it out");
  Require(can_reset_after() || !options().reset_after(),
          "reset_after is true, but only GRU has a reset gate; leave it out");
  const Shape& x = bottoms[0];
  Require(x.num_axes() >= 2, "bottom 0 has shape ", x, "; it must be T x N x ...");
  Require(x[0] > 0, "bottom 0 has shape ", x, "; there must be a step in time");
  if (has_cont()) {
    Require(bottoms[1] == (Shape{x[0], x[1]}), "bottom 1 has shape ", bottoms[1], "; it must be ",
            x[0], "x", x[1], ", one number for each step and item of bottom 0");
  }
  if (has_static_input()) {
    Require(bottoms[2].num_axes() >= 1 && bottoms[2][0] == x[1], "bottom 2 has shape ", bottoms[2],
            "; it must begin with the ", x[1], " items of bottom 0");
  }
  std::vector<Shape> tops = {Shape{x[0], x[1], directions() * output_width()}};
  for (int i = 0; exposes_states() && i < num_states(); ++i) {
    const Shape state{parts(), x[1], state_width(i)};
    const Shape& given = bottoms[first_state_bottom() + i];
    Require(given == state, "bottom ", first_state_bottom() + i, " has shape ", given,
            "; a state must be ", state);
    tops.push_back(state);
  }
  return tops;
}

std::vector<ParamDeclaration> RecurrentBase::Params(const std::vector<Shape>& bottoms) const {
  const Sizes sizes = SizesOf(bottoms);
  std::vector<ParamDeclaration> params;
  for (int i = 0; i < parts(); ++i) {
    const bool is_lowest = i < directions();
    const std::vector<ParamDeclaration> more =
        PartParams(is_lowest ? sizes.inputs : directions() * output_width(),
                   is_lowest && has_static_input() ? sizes.static_inputs : 0);
    params.insert(params.end(), more.begin(), more.end());
  }
  return params;
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

RecurrentBase::Part RecurrentBase::PartOf(const Sizes& sizes, int layer, int direction) const {
  Part part;
  part.index = layer * directions() + direction;
  part.reverse = direction == 1;
  part.has_static_input = layer == 0 && has_static_input();
  part.inputs = layer == 0 ? sizes.inputs : directions() * output_width();
  const auto params_of = [&](bool is_lowest) {
    const int64_t statics = is_lowest && has_static_input() ? 1 : 0;
    return static_cast<int>(PartParams(1, statics).size());
  };
  for (int i = 0; i < part.index; ++i) part.first_param += params_of(i < directions());
  return part;
}

void RecurrentBase::EmitForward(GraphBuilder& graph) const {
  const Sizes sizes = SizesOf(graph);
  std::vector<std::vector<Value*>> last(num_states());
  for (uint32_t layer = 0; layer < options().num_layers(); ++layer) {
    std::vector<Value*> outputs;
    Value* x = LayerInput(graph, layer, "x");
    for (int direction = 0; direction < directions(); ++direction) {
      Part part = PartOf(sizes, layer, direction);
      part.x = x;
      AddStates(graph, &part);
      outputs.push_back(PartOutput(graph, part));
      EmitPart(graph, part, outputs.back());
      for (int i = 0; i < num_states(); ++i) last[i].push_back(part.last[i]);
    }
    if (directions() == 2) graph.Emit(ops::Concat{.axis = 1}, outputs, {LayerOutput(graph, layer)});
  }
  if (parts() > 1)
    graph.Emit(ops::View{}, {LayerOutput(graph, options().num_layers() - 1)}, {graph.top(0)});
  for (int i = 0; i < num_states() && exposes_states() && parts() > 1; ++i)
    graph.Emit(ops::Concat{.axis = 0}, last[i], {graph.top(1 + i)});
}

void RecurrentBase::EmitBackward(GraphBuilder& graph) const {
  const Sizes sizes = SizesOf(graph);
  std::vector<Value*> dstatics;
  std::vector<std::vector<Value*>> dinitial(num_states());
  Value* dy = graph.top_diff(0);
  if (dy != nullptr) dy = Matrix(graph, "dy", dy, sizes.rows(), directions() * output_width());
  for (int layer = static_cast<int>(options().num_layers()) - 1; layer >= 0; --layer) {
    const bool needs_dx = layer > 0 || graph.wants_bottom_diff(0);
    std::vector<Value*> dx;
    Value* x = LayerInput(graph, layer, "x_again");
    for (int direction = 0; direction < directions(); ++direction) {
      Part part = PartOf(sizes, layer, direction);
      part.x = x;
      AddStateGradients(graph, &part);
      for (int i = 0; i < num_states(); ++i)
        dinitial[i].insert(dinitial[i].begin() + direction, part.dinitial[i]);
      Value* part_dy = dy;
      if (directions() == 2 && dy != nullptr) {
        part_dy = Rows(graph, part.Named("dy_part"), output_width());
        graph.Emit(ops::SliceOf{.axis = 1, .offset = direction * output_width()}, {dy}, {part_dy});
      }
      Value* dproducts = EmitPartGrad(graph, part, PartOutput(graph, part), part_dy);
      dx.push_back(InputProductsGrad(graph, part, dproducts, needs_dx, &dstatics));
    }
    if (needs_dx) dy = SumOf(graph, StrCat("dx_of_layer", layer), dx);
  }
  if (graph.wants_bottom_diff(0)) graph.Emit(ops::View{}, {dy}, {graph.bottom_diff(0)});
  EmitStaticGrad(graph, dstatics);
  for (int i = 0; i < num_states() && parts() > 1; ++i) {
    if (dinitial[i][0] != nullptr) {
      graph.Emit(ops::Concat{.axis = 0}, dinitial[i],
                 {graph.bottom_diff(first_state_bottom() + i)});
    }
  }
}

Value* RecurrentBase::LayerInput(GraphBuilder& graph, int layer, const char* name) const {
  if (layer > 0) return LayerOutput(graph, layer - 1);
  const Sizes sizes = SizesOf(graph);
  return Matrix(graph, name, graph.bottom(0), sizes.rows(), sizes.inputs);
}

Value* RecurrentBase::LayerOutput(GraphBuilder& graph, int layer) const {
  if (directions() == 1) return PartOutput(graph, PartOf(SizesOf(graph), layer, 0));
  return SavedRows(graph, StrCat("outputs", layer), 2 * output_width(), SavedAs::kData);
}

Value* RecurrentBase::PartOutput(GraphBuilder& graph, const Part& part) const {
  if (parts() == 1) return graph.top(0);
  return SavedRows(graph, part.Named("output"), output_width(), SavedAs::kData);
}

ops::Recurrence RecurrentBase::RecurrenceOf(GraphBuilder& graph, const Part& part) const {
  const Sizes sizes = SizesOf(graph);
  return {.steps = sizes.steps,
          .items = sizes.items,
          .width = width(),
          .reverse = part.reverse,
          .projection = options().projection_size()};
}

Value* RecurrentBase::InputProducts(GraphBuilder& graph, const Part& part) const {
  const InputParams params = input_params();
  const Sizes sizes = SizesOf(graph);
  Value* products =
      Times(graph, part.Named("x_products"), part.x, PartParam(graph, part, params.weights),
            sizes.rows(), gates(), part.inputs, PartParam(graph, part, params.bias));
  if (!part.has_static_input) return products;
  Value* fixed = Matrix(graph, "x_static", graph.bottom(2), sizes.items, sizes.static_inputs);
  Value* once = Times(graph, part.Named("static_products"), fixed,
                      PartParam(graph, part, params.static_weights), sizes.items, gates(),
                      sizes.static_inputs);
  Value* repeated = Rows(graph, part.Named("static_repeated"), gates());
  graph.Emit(ops::Tile{.axis = 0, .tiles = sizes.steps}, {once}, {repeated});
  return SumOf(graph, part.Named("products"), {products, repeated});
}

Value* RecurrentBase::InputProductsGrad(GraphBuilder& graph, const Part& part, Value* dproducts,
                                        bool needs_dx, std::vector<Value*>* dstatics) const {
  const InputParams params = input_params();
  const Sizes sizes = SizesOf(graph);
  WeightsGrad(graph, part, params.weights, dproducts, part.x, gates(), part.inputs);
  graph.Emit(ops::SumToAxes{{.axis = 1, .num_axes = 1}}, {dproducts},
             {graph.param_diff(part.first_param + params.bias)});
  if (part.has_static_input) {
    Value* dfixed = graph.Scratch(part.Named("dstatic"), Shape{sizes.items, gates()});
    graph.Emit(ops::TileGrad{.axis = 0, .tiles = sizes.steps}, {dproducts}, {dfixed});
    Value* fixed =
        Matrix(graph, "x_static_again", graph.bottom(2), sizes.items, sizes.static_inputs);
    graph.Emit(ops::Gemm{.rows = gates(),
                         .columns = sizes.static_inputs,
                         .inner = sizes.items,
                         .transpose_a = true},
               {dfixed, fixed}, {graph.param_diff(part.first_param + params.static_weights)});
    if (graph.wants_bottom_diff(2)) {
      dstatics->push_back(TimesGrad(graph, part.Named("dx_static"), dfixed,
                                    PartParam(graph, part, params.static_weights), sizes.items,
                                    gates(), sizes.static_inputs));
    }
  }
  if (!needs_dx) return nullptr;
  return TimesGrad(graph, part.Named("dx"), dproducts, PartParam(graph, part, params.weights),
                   sizes.rows(), gates(), part.inputs);
}

void RecurrentBase::EmitStaticGrad(GraphBuilder& graph, const std::vector<Value*>& dstatics) const {
  if (dstatics.empty()) return;
  graph.Emit(ops::View{}, {SumOf(graph, "dx_static_sum", dstatics)}, {graph.bottom_diff(2)});
}

Value* RecurrentBase::Rows(GraphBuilder& graph, const std::string& name, int64_t columns) const {
  return graph.Scratch(name, Shape{SizesOf(graph).rows(), columns});
}

Value* RecurrentBase::SavedRows(GraphBuilder& graph, const std::string& name, int64_t columns,
                                SavedAs as) const {
  return graph.Saved(name, Shape{SizesOf(graph).rows(), columns}, as);
}

Value* RecurrentBase::Cont(GraphBuilder& graph) const {
  return has_cont() ? graph.bottom(1) : nullptr;
}

Value* RecurrentBase::StateOf(GraphBuilder& graph, const Part& part, const char* name, int state,
                              Value* all) const {
  if (parts() == 1 || all == nullptr) return all;
  return graph.Scratch(part.Named(StrCat(name, state)),
                       Shape{1, SizesOf(graph).items, state_width(state)});
}

Value* RecurrentBase::InitialState(GraphBuilder& graph, const Part& part, int state) const {
  const int64_t items = SizesOf(graph).items, columns = state_width(state);
  const std::string name = part.Named(StrCat("initial", state));
  if (exposes_states() && parts() == 1) return graph.bottom(first_state_bottom() + state);
  if (exposes_states()) return graph.Saved(name, Shape{1, items, columns});
  return carries_states(part) ? graph.Saved(name, Shape{items, columns}) : nullptr;
}

Value* RecurrentBase::CarriedState(GraphBuilder& graph, const Part& part, int state) const {
  return graph.State(part.Named(StrCat("carried", state)),
                     Shape{SizesOf(graph).items, state_width(state)});
}

void RecurrentBase::AddStates(GraphBuilder& graph, Part* part) const {
  for (int i = 0; i < num_states(); ++i) {
    part->initial.push_back(InitialState(graph, *part, i));
    if (exposes_states()) {
      if (parts() > 1) {
        graph.Emit(ops::SliceOf{.axis = 0, .offset = part->index},
                   {graph.bottom(first_state_bottom() + i)}, {part->initial[i]});
      }
      part->last.push_back(StateOf(graph, *part, "last", i, graph.top(1 + i)));
    } else if (carries_states(*part)) {
      // Copied, because the state itself is overwritten before backward reads it.
      Value* carried = CarriedState(graph, *part, i);
      graph.Emit(ops::ScaleBy{1}, {carried}, {part->initial[i]});
      part->last.push_back(carried);
    } else {
      part->last.push_back(nullptr);
    }
  }
}

void RecurrentBase::AddStateGradients(GraphBuilder& graph, Part* part) const {
  for (int i = 0; i < num_states(); ++i) {
    part->initial.push_back(InitialState(graph, *part, i));
    Value *all_last = nullptr, *all_initial = nullptr;
    if (options().backprop_states()) {
      all_last = graph.top_diff(1 + i);
      const int bottom = first_state_bottom() + i;
      if (graph.wants_bottom_diff(bottom)) all_initial = graph.bottom_diff(bottom);
    }
    part->dlast.push_back(StateOf(graph, *part, "dlast", i, all_last));
    part->dinitial.push_back(StateOf(graph, *part, "dinitial", i, all_initial));
    if (all_last != part->dlast[i]) {
      graph.Emit(ops::SliceOf{.axis = 0, .offset = part->index}, {all_last}, {part->dlast[i]});
    }
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

void RecurrentBase::WeightsGrad(GraphBuilder& graph, const Part& part, int i, Value* dc, Value* a,
                                int64_t columns, int64_t inner) const {
  graph.Emit(
      ops::Gemm{
          .rows = columns, .columns = inner, .inner = SizesOf(graph).rows(), .transpose_a = true},
      {dc, a}, {graph.param_diff(part.first_param + i)});
}

}  // namespace caffe
