// Ops that copy or convert elements without arithmetic.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "caffe/ops/kernel.hpp"

namespace caffe::ops {

// (x) -> (y):  y = x in y's type. Quantized types get the nearest number (ties to even), clipped.
struct Cast {
  static constexpr std::string_view kName = "Cast";
  static constexpr OperandSet kItemInputs = {0};
  LayoutRule layout_rule() const { return kFollowFirstInput; }
};

// (x) -> (y):  y = x in y's layout and type. assign-layouts inserts it and sets both layouts. Only
// Cast and Reorder change types or layouts.
struct Reorder {
  static constexpr std::string_view kName = "Reorder";
  static constexpr OperandSet kItemInputs = {0};
};

// (x) -> (y):  y has x's elements in x's order, in another shape; or, if `keeps_shape`, in x's
// shape and then in any layout.
struct View {
  static constexpr std::string_view kName = "View";
  static constexpr bool kIsView = true;
  static constexpr bool kInPlace = true;
  bool keeps_shape = false;
  LayoutRule layout_rule() const { return keeps_shape ? kFollowFirstInput : LayoutRule{}; }
};

// () -> (y):  y = value.
struct Fill {
  static constexpr std::string_view kName = "Fill";
  double value = 0;
  std::string Attributes() const { return StrCat("value ", value); }
};

// () -> (y):  y = weight * the pass's loss scale. Backpropagation begins here.
struct LossWeight {
  static constexpr std::string_view kName = "LossWeight";
  double weight = 1;
  std::string Attributes() const { return StrCat("weight ", weight); }
};

// A tensor as outer x extent x inner around an axis, in memory order.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
};

inline AxisView AroundAxis(const TensorDesc& x, int axis) {
  if (x.layout == Layout::kPlain) {
    return {x.shape.count(0, axis), x.shape[axis], x.shape.count(axis + 1)};
  }
  const int64_t n = x.shape[0], c = x.shape[1], h = x.shape[2], w = x.shape[3];
  switch (axis) {
    case 0:
      return {1, n, c * h * w};
    case 1:
      return {n * h * w, c, 1};
    case 2:
      return {n, h, w * c};
    default:
      return {n * h, w, c};
  }
}

// (x_0, x_1, ...) -> (y):  joined along `axis`.
struct Concat {
  static constexpr std::string_view kName = "Concat";
  int axis = 1;
  bool in_place = false;  // inputs may be parts of y's memory: concat-in-place
  std::string Attributes() const { return StrCat("axis ", axis, in_place ? ", in place" : ""); }
  LayoutRule layout_rule() const { return {.inputs = OperandSet::All(), .outputs = {0}}; }
  OperandSet item_inputs() const { return axis == 0 ? OperandSet() : OperandSet::All(); }
};

// (x) -> (y):  the part of x that begins at `offset` along `axis` and has y's extent there.
struct SliceOf {
  static constexpr std::string_view kName = "SliceOf";
  int axis = 1;
  int64_t offset = 0;
  bool in_place = false;  // y may be part of x's memory: concat-in-place
  std::string Attributes() const {
    return StrCat("axis ", axis, ", offset ", offset, in_place ? ", in place" : "");
  }
  LayoutRule layout_rule() const { return kFollowFirstInput; }
};

// (part[, whole]) -> (y):  y's channels from `offset` on are those of `part`; the others are copied
// from `whole`, or not written if it is absent. y may share whole's memory.
struct CAFFE_EXPORT InsertChannels {
  static constexpr std::string_view kName = "InsertChannels";
  static constexpr OperandSet kItemInputs = {0, 1};
  enum Input { kPart, kWhole };
  int64_t offset = 0, channels = 0;  // of the part
  std::string Attributes() const { return StrCat("offset ", offset); }
  LayoutRule layout_rule() const { return kFollowBothInputs; }
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const { return 0; }
};

// The function of a host call; its argument is the kernel's context. If it finds, before it writes
// anything, that its layer's tops have other shapes than the plan assumed, it returns these shapes;
// the plan is then rebuilt and the call repeated. Otherwise it returns nothing.
class HostFunction {
 public:
  template <typename Function>
  HostFunction(Function function) {
    if constexpr (std::is_void_v<std::invoke_result_t<Function&, const KernelContext&>>) {
      function_ = [function = std::move(function)](const KernelContext& ctx) {
        function(ctx);
        return std::vector<Shape>();
      };
      may_change_shapes_ = false;
    } else {
      function_ = std::move(function);
    }
  }
  std::vector<Shape> operator()(const KernelContext& ctx) const { return function_(ctx); }
  bool may_change_shapes() const { return may_change_shapes_; }

 private:
  std::function<std::vector<Shape>(const KernelContext&)> function_;
  bool may_change_shapes_ = true;
};

// Replaces a host call in compiled programs, which have no host: an op, and the fixed shape of its
// output.
struct FixedCall {
  Op op;
  Shape output;
};

// (...) -> (...):  calls back into the host, for data layers and users' own layers. Never fused,
// never captured. Tensors are plain unless writes_any_layout is set, and in host memory unless
// takes_device_memory is set.
struct HostCall {
  static constexpr std::string_view kName = "HostCall";
  std::string what;
  HostFunction call;
  // True if it has no inputs and writes every element of its outputs, as a source of batches. The
  // device may then still be computing while it runs, and the host does not wait for the device.
  bool is_source = false;
  // Output 0 is written in its own layout, whatever that is.
  bool writes_any_layout = false;
  // Output 0 is lent if a device asks for it (KernelContext::loan). Only for sources.
  bool lends = false;
  // Gets its tensors in the memory of KernelContext::device, and launches its work on that device's
  // default stream. On a CPU this makes no difference.
  bool takes_device_memory = false;
  // Null if compiled programs cannot contain the call.
  std::shared_ptr<const FixedCall> in_programs = nullptr;
  // Inputs that may be stored in 16 bits, such as scores. All others are not: they may be labels,
  // indices or boxes.
  OperandSet rounded_inputs = {};
  // True if results may be stored in 16 bits, as those of a source.
  bool rounds_results = false;

  OperandSet exact_inputs() const { return rounded_inputs.Others(); }
  NumericRule numeric_rule() const {
    return is_source || rounds_results ? NumericRule::kStorage : NumericRule::kAsStored;
  }
  LayoutRule layout_rule() const {
    return writes_any_layout ? LayoutRule{.outputs = {0}} : LayoutRule{};
  }
  std::string Attributes() const { return what; }
};

}  // namespace caffe::ops
