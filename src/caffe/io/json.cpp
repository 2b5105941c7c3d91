#include "caffe/io/json.hpp"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/io/utf8.hpp"

namespace caffe {
namespace {

google::protobuf::ListValue& List(JsonObject* object, const std::string& list) {
  return *(*object->mutable_fields())[list].mutable_list_value();
}

std::string ScalarJson(const google::protobuf::Value& value) {
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(value, &json);
  CAFFE_ASSERT(status.ok(), status.ToString());
  return json;
}

std::string ScalarJson(const std::string& text) {
  google::protobuf::Value value;
  value.set_string_value(text);
  return ScalarJson(value);
}

void AppendJson(const google::protobuf::Value& value, const std::string& indent, std::string* json);

// The members of an object or a list between its brackets.
void AppendMembers(
    const std::vector<std::pair<std::string, const google::protobuf::Value*>>& members,
    const char* brackets, const std::string& indent, std::string* json) {
  *json += brackets[0];
  for (size_t i = 0; i < members.size(); ++i) {
    *json += (i > 0 ? ",\n" : "\n") + indent + " " + members[i].first;
    AppendJson(*members[i].second, indent + " ", json);
  }
  if (!members.empty()) *json += "\n" + indent;
  *json += brackets[1];
}

void AppendObject(const JsonObject& object, const std::string& indent, std::string* json) {
  std::vector<std::pair<std::string, const google::protobuf::Value*>> members;
  for (const auto& [key, value] : object.fields()) {
    members.emplace_back(ScalarJson(key) + ": ", &value);
  }
  std::sort(members.begin(), members.end());
  AppendMembers(members, "{}", indent, json);
}

// protobuf's own printing has the keys of an object in another order in each run.
void AppendJson(const google::protobuf::Value& value, const std::string& indent,
                std::string* json) {
  if (value.has_struct_value()) {
    AppendObject(value.struct_value(), indent, json);
  } else if (value.has_list_value()) {
    std::vector<std::pair<std::string, const google::protobuf::Value*>> members;
    for (const auto& member : value.list_value().values()) members.emplace_back("", &member);
    AppendMembers(members, "[]", indent, json);
  } else {
    *json += ScalarJson(value);
  }
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
  AppendObject(object, "", &json);
  return json + "\n";
}

}  // namespace caffe
