// Op forms: serialize ops to files, and read them again from untrusted files.
#pragma once

#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "caffe/core/bytes.hpp"
#include "caffe/ops/op.hpp"
#include "caffe/ops/operand_check.hpp"

namespace caffe {

struct OpForm {
  void (*write)(const Op&, ByteWriter&);
  // Throws InvalidArgument if the bytes are not a valid op.
  Op (*read)(ByteReader&);
  // Throws InvalidArgument unless kernels of the op stay inside operands of these shapes and types.
  void (*check)(const Op&, const OperandCheck&);
};

// Ops that files may contain: the forward ops of inference nets.
class OpForms {
 public:
  static OpForms& Get();
  void Register(std::string_view op, OpForm form);
  // Null if no file can contain the op.
  const OpForm* Find(std::string_view op) const;

 private:
  std::vector<std::pair<std::string_view, OpForm>> forms_;
};

namespace internal {

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

struct FieldWriter {
  ByteWriter& out;

  template <typename... Fields>
  void operator()(const Fields&... fields) const {
    (Write(fields), ...);
  }
  template <typename T>
  void Write(const T& field) const {
    if constexpr (std::is_arithmetic_v<T>) {
      out.Number(field);
    } else if constexpr (std::is_enum_v<T>) {
      out.Number(static_cast<std::underlying_type_t<T>>(field));
    } else if constexpr (IsVector<T>::value) {
      out.Number(static_cast<uint32_t>(field.size()));
      for (const auto& item : field) Write(item);
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      for (const auto& item : field) Write(item);
    } else {
      VisitFields(field, *this);
    }
  }
};

struct FieldReader {
  ByteReader& in;

  template <typename... Fields>
  void operator()(Fields&... fields) const {
    (Read(fields), ...);
  }
  template <typename T>
  void Read(T& field) const {
    if constexpr (std::is_arithmetic_v<T>) {
      field = in.Number<T>();
    } else if constexpr (std::is_enum_v<T>) {
      field = static_cast<T>(in.Number<std::underlying_type_t<T>>());
    } else if constexpr (IsVector<T>::value) {
      field.resize(in.Count(1));
      for (auto& item : field) Read(item);
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      for (auto& item : field) Read(item);
    } else {
      VisitFields(field, *this);
    }
  }
};

// Makes an op for FieldReader, which sets all fields.
template <typename T>
T BlankOp() {
  if constexpr (std::is_default_constructible_v<T>) {
    return T{};
  } else if constexpr (std::is_constructible_v<T, int>) {
    return T(0);
  } else if constexpr (std::is_constructible_v<T, int, int>) {
    return T(0, 0);
  } else {
    return T(0, 0, 0);
  }
}

template <typename T>
struct OpFormRegistrar {
  OpFormRegistrar() {
    OpForms::Get().Register(
        T::kName,
        {.write = [](const Op& op, ByteWriter& out) { FieldWriter{out}.Write(*op.As<T>()); },
         .read =
             [](ByteReader& in) {
               T op = BlankOp<T>();
               FieldReader{in}.Read(op);
               return Op(op);
             },
         .check = [](const Op& op,
                     const OperandCheck& check) { CheckOperands(*op.As<T>(), check); }});
  }
};

}  // namespace internal

// To be used in namespace caffe::ops: lists all fields of a struct in the order of their
// declaration. It does not compile if one is missing.
#define CAFFE_FIELDS(type, ...)                            \
  template <typename Self, typename Visit>                 \
  requires std::is_same_v<std::remove_const_t<Self>, type> \
  void VisitFields(Self& self, const Visit& visit) {       \
    auto& [__VA_ARGS__] = self;                            \
    visit(__VA_ARGS__);                                    \
  }
#define CAFFE_NO_FIELDS(type)                              \
  template <typename Self, typename Visit>                 \
  requires std::is_same_v<std::remove_const_t<Self>, type> \
  void VisitFields(Self&, const Visit&) {                  \
    static_assert(std::is_empty_v<type>);                  \
  }

// To be placed after CAFFE_FIELDS and a function CheckOperands(const op&, const OperandCheck&),
// which throws for operands that the op's kernels must not be given.
#define CAFFE_REGISTER_OP_FORM(op) const ::caffe::internal::OpFormRegistrar<op> op##_form_registrar

}  // namespace caffe
