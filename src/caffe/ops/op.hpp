// Op: one operation of the graph, type-erased. An op is a plain struct with attributes whose
// comment lists its operands; this wrapper lets the graph hold any of them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "caffe/tensor/tensor_view.hpp"

namespace caffe {

// Which operands may be channels-last. All operands named in the masks have the same layout in
// one call; the others are plain. Bit i stands for operand i.
struct LayoutRule {
  uint32_t inputs = 0;
  uint32_t outputs = 0;
  // True: wants channels-last (convolution, pooling, normalisation). False: follows its inputs.
  bool prefers_channels_last = false;
};

// In which types an op is computed; see passes/assign_precision.cpp.
enum class NumericRule {
  kStorage,  // in the types its operands are stored in
  kMath,     // in the layer's math type (convolutions and matrix products)
  kFloat,    // at least float: softmax, losses, statistics, updates
};

// An op struct T has `static constexpr std::string_view kName` and may have
//   static constexpr bool kInPlace          output 0 may share memory with input 0 (default false)
//   static constexpr bool kIsView           output 0 has input 0's bytes (default false)
//   static constexpr NumericRule kNumericRule      default kStorage
//   static constexpr uint32_t kExactInputs  bit i: input i holds labels, indices or flags, which
//   are
//                                           never stored in 16 bits (default none)
//   LayoutRule layout_rule() const                 default: all operands plain
//   std::string Attributes() const                 "kernel 3x3, stride 1x1", for the printer
//   double Flops(inputs, outputs) const            default: one per element of output 0
class Op {
 public:
  template <typename T>
  requires requires { T::kName; }
  Op(T op) : impl_(std::make_shared<Model<T>>(std::move(op))) {}

  std::string_view name() const { return impl_->name(); }
  std::type_index type() const { return impl_->type(); }
  bool in_place() const { return impl_->in_place(); }
  bool is_view() const { return impl_->is_view(); }
  NumericRule numeric_rule() const { return impl_->numeric_rule(); }
  uint32_t exact_inputs() const { return impl_->exact_inputs(); }
  LayoutRule layout_rule() const { return impl_->layout_rule(); }
  std::string Attributes() const { return impl_->Attributes(); }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const {
    return impl_->Flops(inputs, outputs);
  }

  // The struct itself, or nullptr when the op is another.
  template <typename T>
  const T* As() const {
    return type() == typeid(T) ? &static_cast<const Model<T>&>(*impl_).op : nullptr;
  }

 private:
  struct Concept {
    virtual ~Concept() = default;
    virtual std::string_view name() const = 0;
    virtual std::type_index type() const = 0;
    virtual bool in_place() const = 0;
    virtual bool is_view() const = 0;
    virtual NumericRule numeric_rule() const = 0;
    virtual uint32_t exact_inputs() const = 0;
    virtual LayoutRule layout_rule() const = 0;
    virtual std::string Attributes() const = 0;
    virtual double Flops(std::span<const TensorDesc> in, std::span<const TensorDesc> out) const = 0;
  };

  template <typename T>
  struct Model final : Concept {
    explicit Model(T value) : op(std::move(value)) {}
    std::string_view name() const override { return T::kName; }
    std::type_index type() const override { return typeid(T); }
    bool in_place() const override {
      if constexpr (requires { T::kInPlace; }) return T::kInPlace;
      return false;
    }
    bool is_view() const override {
      if constexpr (requires { T::kIsView; }) return T::kIsView;
      return false;
    }
    NumericRule numeric_rule() const override {
      if constexpr (requires { T::kNumericRule; }) return T::kNumericRule;
      return NumericRule::kStorage;
    }
    uint32_t exact_inputs() const override {
      if constexpr (requires { T::kExactInputs; }) return T::kExactInputs;
      return 0;
    }
    LayoutRule layout_rule() const override {
      if constexpr (requires { op.layout_rule(); }) return op.layout_rule();
      return {};
    }
    std::string Attributes() const override {
      if constexpr (requires { op.Attributes(); }) return op.Attributes();
      return "";
    }
    double Flops(std::span<const TensorDesc> in, std::span<const TensorDesc> out) const override {
      if constexpr (requires { op.Flops(in, out); }) return op.Flops(in, out);
      return out.empty() ? 0.0 : static_cast<double>(out[0].count());
    }
    T op;
  };

  std::shared_ptr<const Concept> impl_;
};

// Layout rules most ops need.
inline constexpr LayoutRule kFollowFirstInput{.inputs = 1, .outputs = 1};
inline constexpr LayoutRule kFollowBothInputs{.inputs = 3, .outputs = 1};

}  // namespace caffe
