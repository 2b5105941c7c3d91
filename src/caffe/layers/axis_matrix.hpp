// A sparse matrix that layers multiply with along an axis: resizing filters, permutations, means.
#pragma once

#include <string>
#include <vector>

#include "caffe/graph_builder.hpp"

namespace caffe {

// Has one row per output.
//
//   AxisMatrix last(3);              // for an axis with 3 elements
//   last.AddRow({{2, 1.0}});         // y[0] = x[2]
//   last.Emit(graph, "last", 1, x, y);
class AxisMatrix {
 public:
  struct Tap {
    int64_t place;
    double weight;
  };

  // Throws InvalidArgument for an axis of more than 2^24 elements: kernels read indices as floats.
  static void RequireLength(int64_t elements);
  // For an axis with `inputs` elements, which RequireLength() must accept.
  explicit AxisMatrix(int64_t inputs);

  // Sums taps with the same index, and drops those with weight 0.
  void AddRow(const std::vector<Tap>& taps);
  AxisMatrix Transposed() const;
  // y = matrix * x along `axis`. `name` must be unique within the layer.
  void Emit(GraphBuilder& graph, const std::string& name, int axis, Value* x, Value* y) const;

 private:
  int64_t inputs_;
  std::vector<std::vector<Tap>> rows_;
};

}  // namespace caffe
