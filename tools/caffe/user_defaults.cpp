#include "tools/caffe/user_defaults.hpp"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"

namespace caffe::tools {
namespace {

namespace fs = std::filesystem;
using google::protobuf::FieldDescriptor;

// The text of one field, such as "rate: 0.1".
std::string TextOf(const SolverParameter& message, const FieldDescriptor* field) {
  SolverParameter one = message;
  std::vector<const FieldDescriptor*> fields;
  const auto* const reflection = SolverParameter::GetReflection();
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* other : fields) {
    if (other != field) reflection->ClearField(&one, other);
  }
  return one.ShortDebugString();
}

bool IsSet(const SolverParameter& message, const FieldDescriptor* field) {
  const auto* const reflection = SolverParameter::GetReflection();
  return field->is_repeated() ? reflection->FieldSize(message, field) > 0
                              : reflection->HasField(message, field);
}

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

UserDefaults::UserDefaults() {
  if (std::getenv("CAFFE_CONFIG") != nullptr) {
    reason_ = "CAFFE_CONFIG";
    file_ = Environment("CAFFE_CONFIG");
  } else {
    const std::string base = Environment("XDG_CONFIG_HOME");
    reason_ = base.empty() ? "~/.config" : "XDG_CONFIG_HOME";
    const fs::path folder =
        base.empty() ? fs::path(Environment("HOME")) / ".config" : fs::path(base);
    const fs::path file = folder / "cortado" / "config.prototxt";
    std::error_code unknown;
    if (fs::exists(file, unknown)) file_ = file.string();
  }
  if (!file_.empty()) ReadTextProto(file_, &content_);
}

const UserDefaults& UserDefaults::Get() {
  static const UserDefaults defaults;
  return defaults;
}

std::vector<std::string> UserDefaults::PutInto(SolverParameter* solver) const {
  std::vector<const FieldDescriptor*> fields;
  SolverParameter::GetReflection()->ListFields(content_.solver(), &fields);
  SolverParameter added;
  std::vector<std::string> notes;
  for (const FieldDescriptor* field : fields) {
    if (IsSet(*solver, field)) continue;
    const std::string text = TextOf(content_.solver(), field);
    notes.push_back(StrCat(file_, ": ", text));
    SolverParameter one;
    ParseTextProto(text, file_, &one);
    added.MergeFrom(one);
  }
  solver->MergeFrom(added);
  return notes;
}

}  // namespace caffe::tools
