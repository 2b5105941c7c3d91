#include "caffe/layers/resize_base.hpp"

#include "caffe/error.hpp"
#include "caffe/ops/window.hpp"

namespace caffe {

int64_t ScaledExtent(int64_t extent, double factor) {
  const double scaled = static_cast<double>(extent) * factor;
  Require(scaled >= 0 && scaled <= static_cast<double>(ops::kMostPlaces), "factor ", factor,
          " makes ", scaled, " pixels of ", extent, "; there may be at most ", ops::kMostPlaces);
  return static_cast<int64_t>(scaled);
}

std::vector<Shape> ResizeBase::InferTopShapes(const std::vector<Shape>& bottoms) const {
  const Shape& bottom = bottoms[0];
  Require(bottom.num_axes() == 4, "needs a bottom with 4 axes (N,C,H,W), got shape ", bottom);
  Require(bottom[2] > 0 && bottom[3] > 0, "the bottom has ", bottom[2], "x", bottom[3],
          " pixels; there must be some");
  const ImageSize size = TopSize(bottoms);
  Require(size[0] > 0 && size[1] > 0, "the top would have ", size[0], "x", size[1],
          " pixels; both sides must be at least 1");
  for (const int64_t extent : size) AxisMatrix::RequireLength(extent);
  return {bottom.With(2, size[0]).With(3, size[1])};
}

void ResizeBase::EmitForward(GraphBuilder& graph) const {
  EmitFilters(graph, "resized", graph.bottom(0), graph.top(0));
}

void ResizeBase::EmitBackward(GraphBuilder& graph) const {
  EmitFiltersGrad(graph, "dresized", graph.top_diff(0), graph.bottom_diff(0));
}

ImageSize ResizeBase::SizeOfSecondBottom(const std::vector<Shape>& bottoms, bool has_options) {
  Require(!has_options, "has a size in its options and one of bottom 1; leave out one");
  Require(bottoms[1].num_axes() == 4, "bottom 1 has shape ", bottoms[1],
          "; it must have 4 axes (N,C,H,W), the last of which give the size");
  return ImageSizeOf(bottoms[1]);
}

void ResizeBase::EmitFilters(GraphBuilder& graph, const std::string& name, Value* x,
                             Value* y) const {
  const Shape &from = graph.shape(x), &to = graph.shape(y);
  const ImageSize input = ImageSizeOf(from), output = ImageSizeOf(to);
  const bool rows_first = output[0] * input[1] <= input[0] * output[1];
  const int first = rows_first ? 0 : 1, second = 1 - first;
  Value* half = graph.Scratch(name + "_half", from.With(2 + first, output[first]));
  Filter(first, input, output).Emit(graph, name + "_first", 2 + first, x, half);
  Filter(second, input, output).Emit(graph, name + "_second", 2 + second, half, y);
}

void ResizeBase::EmitFiltersGrad(GraphBuilder& graph, const std::string& name, Value* dy,
                                 Value* dx) const {
  if (dx == nullptr) return;
  const Shape &from = graph.shape(dx), &to = graph.shape(dy);
  const ImageSize input = ImageSizeOf(from), output = ImageSizeOf(to);
  const bool rows_first = input[0] * output[1] <= output[0] * input[1];
  const int first = rows_first ? 0 : 1, second = 1 - first;
  Value* half = graph.Scratch(name + "_half", to.With(2 + first, input[first]));
  Filter(first, input, output).Transposed().Emit(graph, name + "_first", 2 + first, dy, half);
  Filter(second, input, output).Transposed().Emit(graph, name + "_second", 2 + second, half, dx);
}

}  // namespace caffe
