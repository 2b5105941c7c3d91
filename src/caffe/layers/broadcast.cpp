#include "caffe/layers/broadcast.hpp"

#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/ops/formula.hpp"

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

// The number of axes that remain if neighbours along which the same shapes are repeated are joined.
int RepeatedInTurn(const std::vector<Shape>& shapes, const Shape& whole) {
  int turns = 0;
  std::vector<bool> last;
  for (int axis = 0; axis < whole.num_axes(); ++axis) {
    if (whole[axis] == 1) continue;
    std::vector<bool> is_repeated;
    for (const Shape& shape : shapes) is_repeated.push_back(ExtentAt(shape, whole, axis) == 1);
    if (is_repeated != last) ++turns;
    last = std::move(is_repeated);
  }
  return turns;
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
  const Shape whole(std::move(extents));
  const int turns = RepeatedInTurn(shapes, whole);
  Require(turns <= ops::kMaxFormulaAxes, "the bottoms have shapes ", TextOf(shapes),
          ", which are repeated along ", turns, " axes in turn; at most ", ops::kMaxFormulaAxes,
          " are possible");
  return whole;
}

}  // namespace caffe
