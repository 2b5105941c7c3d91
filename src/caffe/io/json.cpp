#include "caffe/io/json.hpp"

#include <google/protobuf/util/json_util.h>

#include "caffe/error.hpp"
#include "caffe/io/utf8.hpp"

namespace caffe {
namespace {

google::protobuf::ListValue& List(JsonObject* object, const std::string& list) {
  return *(*object->mutable_fields())[list].mutable_list_value();
}

}  // namespace

JsonObject* AddJson(JsonObject* object, const std::string& list) {
  return List(object, list).add_values()->mutable_struct_value();
}

void AddJson(JsonObject* object, const std::string& list, const std::string& text) {
  List(object, list).add_values()->set_string_value(text);
}

void AddJson(JsonObject* object, const std::string& list, double number) {
  List(object, list).add_values()->set_number_value(number);
}

JsonObject* JsonField(JsonObject* object, const std::string& key) {
  return (*object->mutable_fields())[key].mutable_struct_value();
}

void MakeJsonList(JsonObject* object, const std::string& list) {
  List(object, list);
}

std::string FormatJson(JsonObject object) {
  MakeUtf8(&object);
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  const auto status = google::protobuf::util::MessageToJsonString(object, &json, options);
  CAFFE_ASSERT(status.ok(), status.ToString());
  return json;
}

}  // namespace caffe
