#include "caffe/ops/formula.hpp"

#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/ops/arrange.hpp"

namespace caffe::ops {
namespace {

// Distances of an operand's elements along the logical axes of `whole`.
std::vector<int64_t> BroadcastStrides(const TensorDesc& operand, const Shape& whole) {
  const int missing = whole.num_axes() - operand.shape.num_axes();
  Require(missing >= 0, "shape ", operand.shape, " does not broadcast to ", whole);
  const std::vector<int64_t> own = MemoryStrides(operand);
  std::vector<int64_t> strides(static_cast<size_t>(whole.num_axes()));
  for (int i = missing; i < whole.num_axes(); ++i) {
    const int64_t extent = operand.shape[i - missing];
    Require(extent == whole[i] || extent == 1, "shape ", operand.shape, " does not broadcast to ",
            whole);
    if (extent > 1) strides[static_cast<size_t>(i)] = own[static_cast<size_t>(i - missing)];
  }
  return strides;
}

}  // namespace

SharedAxes::SharedAxes(const TensorDesc& whole, std::span<const TensorDesc> operands)
    : strides(operands.size()) {
  std::vector<std::vector<int64_t>> logical;
  for (const TensorDesc& operand : operands)
    logical.push_back(BroadcastStrides(operand, whole.shape));
  for (const int axis : MemoryAxes(whole)) {
    const int64_t extent = whole.shape[axis];
    if (extent == 1) continue;
    const auto at = static_cast<size_t>(axis);
    bool joins = axes > 0;
    for (size_t i = 0; joins && i < operands.size(); ++i)
      joins = strides[i][static_cast<size_t>(axes - 1)] == extent * logical[i][at];
    if (!joins) {
      Require(axes < kMaxFormulaAxes, "operands of shape ", whole.shape,
              " are broadcast along more than ", kMaxFormulaAxes,
              " separate axes; reshape them to fewer");
      extents[static_cast<size_t>(axes++)] = 1;
    }
    extents[static_cast<size_t>(axes - 1)] *= extent;
    for (size_t i = 0; i < operands.size(); ++i)
      strides[i][static_cast<size_t>(axes - 1)] = logical[i][at];
  }
}

bool SharedAxes::IsWhole(size_t operand) const {
  int64_t stride = 1;
  for (auto axis = static_cast<size_t>(axes); axis-- > 0; stride *= extents[axis]) {
    if (strides[operand][axis] != stride) return false;
  }
  return true;
}

bool SharedAxes::IsScalar(size_t operand) const {
  return std::ranges::all_of(strides[operand], [](int64_t stride) { return stride == 0; });
}

Shape BroadcastShape(const Shape& a, const Shape& b) {
  const int axes = std::max(a.num_axes(), b.num_axes());
  std::vector<int64_t> dims(static_cast<size_t>(axes), 1);
  for (int i = 1; i <= axes; ++i) {
    const int64_t of_a = i <= a.num_axes() ? a[-i] : 1, of_b = i <= b.num_axes() ? b[-i] : 1;
    Require(of_a == of_b || of_a == 1 || of_b == 1, "shapes ", a, " and ", b,
            " do not broadcast: axis ", -i, " has ", of_a, " and ", of_b,
            " elements; they must be equal, or one of them 1");
    dims[static_cast<size_t>(axes - i)] = of_a == 1 ? of_b : of_a;
  }
  return Shape(std::move(dims));
}

}  // namespace caffe::ops
