// Op: one operation of the graph, type-erased. An op is a plain struct of attributes; the struct's
// comment lists its operands. This wrapper lets the graph hold any of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "caffe/ops/epilogue.hpp"
#include "caffe/ops/operand_set.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe {

// Operands that may be channels-last. All of them have the same layout in one call; the other
// operands are plain.
struct LayoutRule {
  OperandSet inputs = {}, outputs = {};
  // True: prefers channels-last (convolution, pooling, normalization). False: follows its inputs.
  bool prefers_channels_last = false;
};

// The type settings of a prototxt that an op obeys; see passes/assign_precision.cpp.
enum class NumericRule {
  kStorage,  // forward_type and backward_type
  kMath,     // also forward_math and backward_math: convolutions and matrix products
  kFloat,    // never fewer bits than float: statistics, recurrent units, updates
  // Computes in float or double whatever the types of the operands, and reads and writes each in
  // its stored type: softmax, losses. Forward results are stored in at least float.
  kAsStored,
};

// Role of an operand, which decides the type in which it is read or written.
enum class Role : uint8_t {
  kData,       // activations and their gradients: the signature's data type
  kFactor,     // weights of a product: the signature's data type
  kParameter,  // other parameters, and all parameters' gradients: their stored type
  kExact,      // labels, indices, flags, masks, statistics, operands of losses: their stored type
};

// An op struct T has `static constexpr std::string_view kName` and may have
//   static constexpr bool kInPlace          output 0 may have an input's memory (default false)
//   static constexpr bool kIsView           output 0 has input 0's bytes (default false)
//   static constexpr NumericRule kNumericRule      default kStorage
//   static constexpr OperandSet kExactInputs       hold labels, indices or flags, which are never
//                                                  stored in 16 bits (default none)
//   static constexpr bool kMakesFloat              output 0 may be float although data is 16-bit
//   static constexpr OperandSet kUpdates           outputs that are updated in place and that no
//                                                  other output depends on; a node without them
//                                                  computes the others (default none)
//   static constexpr OperandSet kItemInputs        inputs whose item i, along axis 0, is all that
//                                                  item i of every output needs of them; the other
//                                                  inputs serve all items. Empty if items depend on
//                                                  each other (default none)
//   bool in_place() const, NumericRule numeric_rule() const, OperandSet exact_inputs() const,
//   OperandSet updates() const, OperandSet item_inputs() const
//                                                  instead of these constants, where they depend
//                                                  on the attributes
//   ops::Epilogue epilogue                         applied to output 0 (ops/epilogue.hpp)
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
  OperandSet exact_inputs() const { return impl_->exact_inputs(); }
  bool makes_float() const { return impl_->makes_float(); }
  OperandSet updates() const { return impl_->updates(); }
  OperandSet item_inputs() const { return impl_->item_inputs(); }
  LayoutRule layout_rule() const { return impl_->layout_rule(); }
  // Null if the op type has no epilogue; an empty epilogue is not null.
  const ops::Epilogue* epilogue() const { return impl_->epilogue(); }
  // The same op with another epilogue. The op type must have one.
  Op WithEpilogue(ops::Epilogue epilogue) const { return impl_->WithEpilogue(std::move(epilogue)); }
  std::string Attributes() const { return impl_->Attributes(); }
  double Flops(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) const {
    return impl_->Flops(inputs, outputs);
  }

  // The struct itself, or nullptr if the op has another type.
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
    virtual OperandSet exact_inputs() const = 0;
    virtual bool makes_float() const = 0;
    virtual OperandSet updates() const = 0;
    virtual OperandSet item_inputs() const = 0;
    virtual LayoutRule layout_rule() const = 0;
    virtual const ops::Epilogue* epilogue() const = 0;
    virtual Op WithEpilogue(ops::Epilogue epilogue) const = 0;
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
      if constexpr (requires { op.in_place(); }) return op.in_place();
      return false;
    }
    bool is_view() const override {
      if constexpr (requires { T::kIsView; }) return T::kIsView;
      return false;
    }
    NumericRule numeric_rule() const override {
      if constexpr (requires { T::kNumericRule; }) return T::kNumericRule;
      if constexpr (requires { op.numeric_rule(); }) return op.numeric_rule();
      return NumericRule::kStorage;
    }
    OperandSet exact_inputs() const override {
      if constexpr (requires { T::kExactInputs; }) return T::kExactInputs;
      if constexpr (requires { op.exact_inputs(); }) return op.exact_inputs();
      return {};
    }
    bool makes_float() const override {
      if constexpr (requires { T::kMakesFloat; }) return T::kMakesFloat;
      return false;
    }
    OperandSet updates() const override {
      if constexpr (requires { T::kUpdates; }) return T::kUpdates;
      if constexpr (requires { op.updates(); }) return op.updates();
      return {};
    }
    OperandSet item_inputs() const override {
      if constexpr (requires { T::kItemInputs; }) return T::kItemInputs;
      if constexpr (requires { op.item_inputs(); }) return op.item_inputs();
      return {};
    }
    LayoutRule layout_rule() const override {
      if constexpr (requires { op.layout_rule(); }) return op.layout_rule();
      return {};
    }
    const ops::Epilogue* epilogue() const override {
      if constexpr (requires { op.epilogue; }) return &op.epilogue;
      return nullptr;
    }
    Op WithEpilogue(ops::Epilogue epilogue) const override {
      T changed = op;
      if constexpr (requires { changed.epilogue; }) changed.epilogue = std::move(epilogue);
      return Op(std::move(changed));
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

// Layout rules that most ops need.
inline constexpr LayoutRule kFollowFirstInput{.inputs = {0}, .outputs = {0}};
inline constexpr LayoutRule kFollowBothInputs{.inputs = {0, 1}, .outputs = {0}};

}  // namespace caffe
