#include "caffe/layers/axis_matrix.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "caffe/error.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/constant.hpp"

namespace caffe {
namespace {

Value* Table(GraphBuilder& graph, const std::string& name, const Shape& shape,
             std::vector<float> values) {
  Value* table = graph.Scratch(name, shape);
  graph.Emit(ops::Constant{std::make_shared<const std::vector<float>>(std::move(values))}, {},
             {table});
  return table;
}

}  // namespace

void AxisMatrix::RequireLength(int64_t elements) {
  constexpr int64_t kMost = int64_t{1} << std::numeric_limits<float>::digits;
  Require(elements <= kMost, "an axis that is resized, turned around or reduced has ", elements,
          " elements; it may have at most ", kMost);
}

AxisMatrix::AxisMatrix(int64_t inputs) : inputs_(inputs) {
  RequireLength(inputs);
}

void AxisMatrix::AddRow(const std::vector<Tap>& taps) {
  std::map<int64_t, double> weights;
  for (const Tap& tap : taps) {
    CAFFE_ASSERT(tap.place >= 0 && tap.place < inputs_, "place ", tap.place, " of ", inputs_);
    weights[tap.place] += tap.weight;
  }
  std::vector<Tap>& row = rows_.emplace_back();
  for (const auto& [place, weight] : weights) {
    if (weight != 0) row.push_back({place, weight});
  }
}

AxisMatrix AxisMatrix::Transposed() const {
  AxisMatrix transposed(static_cast<int64_t>(rows_.size()));
  transposed.rows_.resize(inputs_);
  for (size_t output = 0; output < rows_.size(); ++output) {
    for (const Tap& tap : rows_[output]) {
      transposed.rows_[tap.place].push_back({static_cast<int64_t>(output), tap.weight});
    }
  }
  return transposed;
}

void AxisMatrix::Emit(GraphBuilder& graph, const std::string& name, int axis, Value* x,
                      Value* y) const {
  if (y == nullptr) return;
  size_t taps = 1;
  for (const std::vector<Tap>& row : rows_) taps = std::max(taps, row.size());
  std::vector<float> places(rows_.size() * taps, -1), weights(rows_.size() * taps, 0);
  for (size_t output = 0; output < rows_.size(); ++output) {
    for (size_t k = 0; k < rows_[output].size(); ++k) {
      places[output * taps + k] = static_cast<float>(rows_[output][k].place);
      weights[output * taps + k] = static_cast<float>(rows_[output][k].weight);
    }
  }
  const Shape shape{static_cast<int64_t>(rows_.size()), static_cast<int64_t>(taps)};
  graph.Emit(ops::WeightedGather{axis},
             {x, Table(graph, name + "_places", shape, std::move(places)),
              Table(graph, name + "_weights", shape, std::move(weights))},
             {y});
}

}  // namespace caffe
