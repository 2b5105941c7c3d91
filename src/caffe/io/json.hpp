// JSON documents: protobuf's Struct, which can print itself.
//
//   JsonObject root;
//   PutJson(&root, "loss", 0.5);
//   PutJson(AddJson(&root, "layers"), "name", "conv1");
//   std::cout << FormatJson(root);        {"loss": 0.5, "layers": [{"name": "conv1"}]}
#pragma once

#include <google/protobuf/struct.pb.h>

#include <cmath>
#include <string>
#include <type_traits>

#include "caffe/export.hpp"

namespace caffe {

using JsonObject = google::protobuf::Struct;

// Sets a boolean, number or string. Numbers that JSON does not support (NaN, infinity) become null.
template <typename T>
void PutJson(JsonObject* object, const std::string& key, const T& value) {
  google::protobuf::Value& field = (*object->mutable_fields())[key];
  if constexpr (std::is_same_v<T, bool>) {
    field.set_bool_value(value);
  } else if constexpr (!std::is_arithmetic_v<T>) {
    field.set_string_value(value);
  } else if (std::isfinite(static_cast<double>(value))) {
    field.set_number_value(static_cast<double>(value));
  } else {
    field.set_null_value(google::protobuf::NULL_VALUE);
  }
}

// Appends an object to the list of that name; creates the list if necessary.
CAFFE_EXPORT JsonObject* AddJson(JsonObject* object, const std::string& list);
// Appends a string or a number to the list of that name; creates the list if necessary.
CAFFE_EXPORT void AddJson(JsonObject* object, const std::string& list, const std::string& text);
CAFFE_EXPORT void AddJson(JsonObject* object, const std::string& list, double number);
// Returns the object of that name; creates it if necessary.
CAFFE_EXPORT JsonObject* JsonField(JsonObject* object, const std::string& key);
// Creates the list, which may remain empty.
CAFFE_EXPORT void MakeJsonList(JsonObject* object, const std::string& list);

// Formats over several lines, with the keys of each object in alphabetical order and a newline at
// the end.
CAFFE_EXPORT std::string FormatJson(JsonObject object);

}  // namespace caffe
