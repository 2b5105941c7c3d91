// A sparse matrix by which layers multiply along an axis: filters that resize, orders, means.
#pragma once

#include <string>
#include <vector>

#include "caffe/graph_builder.hpp"

namespace caffe {

// One row per output.
//
//   AxisMatrix last(3);              // of an axis with 3 elements
//   last.AddRow({{2, 1.0}});         // y[0] = x[2]
//   last.Emit(graph, "last", 1, x, y);
class AxisMatrix {
 public:
  struct Tap {
    int64_t place;
    double weight;
  };

  // Throws InvalidArgument for an axis of more than 2^24 elements: kernels read places as floats.
  static void RequireLength(int64_t elements);
  // Of an axis with so many elements, which RequireLength() takes.
  explicit AxisMatrix(int64_t inputs);

  // Taps of one place are added up, and those with weight 0 left out.
  void AddRow(const std::vector<Tap>& taps);
  AxisMatrix Transposed() const;
  // y = matrix * x along `axis`. `name` is the layer's own, each time another.
  void Emit(GraphBuilder& graph, const std::string& name, int axis, Value* x, Value* y) const;

 private:
  int64_t inputs_;
  std::vector<std::vector<Tap>> rows_;
};

}  // namespace caffe
