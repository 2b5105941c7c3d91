#include "caffe/io/expand/defaults.hpp"

#include <google/protobuf/descriptor.h>

#include <set>

#include "caffe/core/field_names.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::expand {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// `message` is null where the schema is not known: options of a plug-in.
void AddMissing(const Descriptor* message, const Fields& defaults, Fields* fields) {
  std::set<std::string> own;
  for (const Field& field : *fields) own.insert(field.name.text);
  for (const Field& field : defaults) {
    if (!own.contains(field.name.text)) {
      fields->push_back(field);
      continue;
    }
    const FieldDescriptor* descriptor = FindField(message, field.name.text);
    if (!field.is_message || (descriptor != nullptr && descriptor->is_repeated())) continue;
    for (Field& one : *fields) {
      if (one.name.text == field.name.text && one.is_message)
        AddMissing(descriptor ? descriptor->message_type() : nullptr, field.fields, &one.fields);
    }
  }
}

}  // namespace

std::string Defaults::Add(const Field& field) {
  const Field* type = Find(field.fields, "type");
  RequireAt(field.name.place,
            type != nullptr && type->value.size() == 1 && type->value[0].is_string(),
            "'defaults' needs the type of the layers that they are for: type: \"Convolution\"");
  Fields rest;
  for (const Field& one : field.fields) {
    const std::string& name = one.name.text;
    RequireAt(one.name.place, name != "name" && name != "bottom" && name != "top",
              "defaults for all layers of type ", type->value[0].text, " cannot set '", name,
              "', which each layer has for itself");
    if (name != "type") rest.push_back(one);
  }
  const std::string text = Unquoted(type->value[0]);
  Fields& kept = by_type_[text];
  AddMissing(LayerParameter::descriptor(), kept, &rest);
  kept = rest;
  return text;
}

void Defaults::Complete(const std::string& type, Fields* layer) const {
  const auto found = by_type_.find(type);
  if (found != by_type_.end()) AddMissing(LayerParameter::descriptor(), found->second, layer);
}

}  // namespace caffe::expand
