#include "caffe/io/solver_position.hpp"

#include <cctype>
#include <filesystem>
#include <vector>

#include "caffe/core/paths.hpp"
#include "caffe/io/expand/expand.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {
namespace {

using google::protobuf::FieldDescriptor;

// Returns the fields of SolverParameter among the words of `text`, in order.
std::vector<const FieldDescriptor*> FieldsIn(const std::string& text) {
  std::vector<const FieldDescriptor*> fields;
  std::string word;
  for (const char letter : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_') {
      word += letter;
      continue;
    }
    const FieldDescriptor* field = SolverParameter::descriptor()->FindFieldByName(word);
    if (field != nullptr) fields.push_back(field);
    word.clear();
  }
  return fields;
}

}  // namespace

ErrorPlace PositionOfSolverField(const std::string& file, const std::string& message) {
  constexpr std::string_view kBefore = "solver: ";
  if (!message.starts_with(kBefore) || !IsPlainFile(file)) return {};
  const SourceText text = ReadDefinitionText(file, *SolverParameter::descriptor());
  SolverParameter solver;
  const TextPositions positions(text, &solver);
  if (!positions.parses()) return {file, ""};
  for (const FieldDescriptor* field : FieldsIn(message.substr(kBefore.size()))) {
    ErrorPlace place = positions.PlaceOf(field, field->is_repeated() ? 0 : -1);
    if (!place.place.empty()) return place;
  }
  return {file, ""};
}

}  // namespace caffe
