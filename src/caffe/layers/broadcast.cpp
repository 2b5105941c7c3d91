#include "caffe/layers/broadcast.hpp"

#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/reduce.hpp"

namespace caffe {
namespace {

// The extent of axis `axis` of `whole` in a shape whose last axes are those of `whole`.
int64_t ExtentAt(const Shape& shape, const Shape& whole, int axis) {
  const int own = axis - whole.num_axes() + shape.num_axes();
  return own < 0 ? 1 : shape[own];
}

std::string TextOf(const std::vector<Shape>& shapes) {
  std::string text;
  for (size_t i = 0; i < shapes.size(); ++i)
    text += StrCat(i == 0 ? "" : i + 1 == shapes.size() ? " and " : ", ", shapes[i]);
  return text;
}

}  // namespace

Shape BroadcastShape(const std::vector<Shape>& shapes) {
  const auto axes = [](const Shape& shape) { return shape.num_axes(); };
  const Shape& longest = *std::ranges::max_element(shapes, {}, axes);
  std::vector<int64_t> extents = longest.dims();
  for (const Shape& shape : shapes) {
    for (int axis = 0; axis < longest.num_axes(); ++axis) {
      const int64_t extent = ExtentAt(shape, longest, axis);
      Require(extent == 1 || extents[axis] == 1 || extent == extents[axis],
              "the bottoms have shapes ", TextOf(shapes), "; counted from the last axis, axis ",
              longest.num_axes() - axis, " has extents ", extents[axis], " and ", extent,
              ", which must be equal, or one of them 1");
      if (extent != 1) extents[axis] = extent;
    }
  }
  const Shape whole(extents);
  (void)StepsOf(shapes, whole);  // throws for more axes than kernels have
  return whole;
}

ops::BroadcastSteps StepsOf(const std::vector<Shape>& shapes, const Shape& whole) {
  ops::BroadcastSteps result;
  std::vector<int64_t> elements(shapes.size(), 1);  // of the axes after this one
  // Extents and steps, from the last axis to the first.
  std::vector<std::pair<int64_t, std::vector<int64_t>>> axes;
  for (int axis = whole.num_axes() - 1; axis >= 0; --axis) {
    if (whole[axis] == 1) continue;
    std::vector<int64_t> steps;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const bool is_repeated = ExtentAt(shapes[i], whole, axis) == 1;
      steps.push_back(is_repeated ? 0 : elements[i]);
      if (!is_repeated) elements[i] *= whole[axis];
    }
    bool continues = !axes.empty();
    for (size_t i = 0; continues && i < steps.size(); ++i)
      continues = steps[i] == axes.back().first * axes.back().second[i];
    if (continues) {
      axes.back().first *= whole[axis];
    } else {
      axes.emplace_back(whole[axis], std::move(steps));
    }
  }
  Require(axes.size() <= ops::BroadcastSteps::kMostAxes, "the bottoms have shapes ", TextOf(shapes),
          ", which are repeated along ", axes.size(), " axes in turn; at most ",
          ops::BroadcastSteps::kMostAxes, " are possible");
  result.axes = static_cast<int32_t>(axes.size());
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const auto& [extent, steps] = axes[axes.size() - 1 - axis];
    result.extents[axis] = extent;
    for (size_t i = 0; i < steps.size(); ++i) result.steps[i][axis] = steps[i];
  }
  return result;
}

void EmitSumOfRepeats(GraphBuilder& graph, const std::string& name, Value* whole, Value* part) {
  if (part == nullptr) return;
  const Shape &all = graph.shape(whole), &kept = graph.shape(part);
  std::vector<int> kept_axes, summed_axes;
  for (int axis = 0; axis < all.num_axes(); ++axis) {
    const bool is_kept = all[axis] != 1 && ExtentAt(kept, all, axis) != 1;
    (is_kept ? kept_axes : summed_axes).push_back(axis);
  }
  const int count = static_cast<int>(kept_axes.size());
  if (count == 0 || kept_axes.back() - kept_axes.front() + 1 == count) {
    graph.Emit(ops::SumToAxes{{.axis = count == 0 ? 0 : kept_axes.front(), .num_axes = count}},
               {whole}, {part});
    return;
  }
  std::vector<int> order = kept_axes;
  order.insert(order.end(), summed_axes.begin(), summed_axes.end());
  const ops::Permute permute{order};
  Value* sorted = graph.Scratch(name, permute.OutputShape(all));
  graph.Emit(permute, {whole}, {sorted});
  graph.Emit(ops::Reduce{.reduction = ops::Reduction::kSum}, {sorted}, {part});
}

}  // namespace caffe
