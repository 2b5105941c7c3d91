// Ops that move or convert elements without computing anything.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "caffe/ops/kernel.hpp"

namespace caffe::ops {

// (x) -> (y):  y = x in y's type; where that is quantised the nearest (even) number, clipped.
struct Cast {
  static constexpr std::string_view kName = "Cast";
  LayoutRule layout_rule() const { return kFollowFirstInput; }
};

// (x) -> (y):  y = x in y's layout and type. assign-layouts inserts it and sets both layouts
// itself. No type or layout changes but in these two.
struct Reorder {
  static constexpr std::string_view kName = "Reorder";
};

// (x) -> (y):  y has x's elements in x's order, in another shape or, where `keeps_shape`, in x's
// and then in any layout.
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

// () -> (y):  y = weight * the pass's loss scale: where gradients begin.
struct LossWeight {
  static constexpr std::string_view kName = "LossWeight";
  double weight = 1;
  std::string Attributes() const { return StrCat("weight ", weight); }
};

// A tensor seen as outer x extent x inner around an axis of its memory order.
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
  bool in_place = false;  // inputs may lie inside y: concat-in-place
  std::string Attributes() const { return StrCat("axis ", axis, in_place ? ", in place" : ""); }
  LayoutRule layout_rule() const { return {.inputs = OperandSet::All(), .outputs = {0}}; }
};

// (x) -> (y):  the part of x that begins at `offset` along `axis` and has y's extent there.
struct SliceOf {
  static constexpr std::string_view kName = "SliceOf";
  int axis = 1;
  int64_t offset = 0;
  bool in_place = false;  // y may lie inside x: concat-in-place
  std::string Attributes() const {
    return StrCat("axis ", axis, ", offset ", offset, in_place ? ", in place" : "");
  }
  LayoutRule layout_rule() const { return kFollowFirstInput; }
};

// What a host call does, a function of its context. One that finds, before it writes anything, that
// its layer's tops have other shapes than the plan assumed returns these shapes: the plan is made
// anew, and the call repeated. Others return nothing.
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

// What compiled programs, which have no host, run in the place of a call, and the shape that its
// output has there, where shapes are fixed.
struct FixedCall {
  Op op;
  Shape output;
};

// (...) -> (...):  calls back into the host: data layers and users' own layers. Never fused,
// never captured. Tensors arrive plain, but for what writes_any_layout allows, and in the host's
// memory, but for what takes_device_memory says.
struct HostCall {
  static constexpr std::string_view kName = "HostCall";
  std::string what;
  HostFunction call;
  // Writes every element of its outputs, and has no inputs: batches. A device then takes them while
  // it still computes, and the host does not wait for it.
  bool is_source = false;
  // Output 0 is written in whatever layout it has.
  bool writes_any_layout = false;
  // Output 0 is lent where a device asks for it (KernelContext::loan). Of sources.
  bool lends = false;
  // Gets its tensors where they are, in the memory of KernelContext::device, and launches its work
  // on that device's default stream. On a CPU both are the host's anyway.
  bool takes_device_memory = false;
  // Null: programs cannot have it.
  std::shared_ptr<const FixedCall> in_programs = nullptr;
  LayoutRule layout_rule() const {
    return writes_any_layout ? LayoutRule{.outputs = {0}} : LayoutRule{};
  }
  std::string Attributes() const { return what; }
};

}  // namespace caffe::ops
