#include "caffe/io/expand/expand.hpp"

#include <cctype>

#include "caffe/core/field_names.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/expand/net_expander.hpp"
#include "caffe/io/expand/text_tree.hpp"
#include "caffe/io/expand/text_writer.hpp"
#include "caffe/io/text_walk.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr std::string_view kWordsOfShortNets[] = {"block", "defaults", "include", "use"};

// True if the word stands somewhere as the name of a field that may be one of short nets: a quick
// look that spares most nets the division into tokens. Layers have `include { phase: TRAIN }`.
bool MayHaveField(std::string_view text, std::string_view word) {
  const auto is_of_name = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
  };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t next = text.find_first_not_of(" \t\r\n", at + word.size());
    if (next == std::string_view::npos || (at > 0 && is_of_name(text[at - 1]))) continue;
    const bool opens = (text[next] == '{' || text[next] == '<') && word != "include";
    if (text[next] == ':' || opens) return true;
  }
  return false;
}

void Expand(const Descriptor& root, SourceText* text) {
  const SourceFile& file = text->main_file();
  expand::Fields fields;
  try {
    fields = expand::ParseFields(expand::Tokenize(file.text, file));
  } catch (const expand::Mistake& mistake) {
    throw InvalidArgument(ErrorAt(mistake.place, mistake.what));
  }
  expand::TextWriter writer(text);
  if (&root == NetParameter::descriptor()) {
    expand::NetExpander(text, &writer).Run(fields);
    return;
  }
  for (const expand::Field& field : fields) {
    const FieldDescriptor* descriptor = FindField(&root, field.name.text);
    const bool is_net = descriptor != nullptr && field.is_message &&
                        descriptor->message_type() == NetParameter::descriptor();
    if (!is_net) {
      writer.Write(field, -1);
      continue;
    }
    writer.Open(field);
    expand::NetExpander(text, &writer).Run(field.fields);
    writer.Close(field);
  }
}

}  // namespace

bool HasShortNet(std::string_view text, const Descriptor& root) {
  bool may_have = false;
  for (const std::string_view word : kWordsOfShortNets)
    may_have = may_have || MayHaveField(text, word);
  if (!may_have) return false;
  for (TextWalk walk(text, &root); walk.Next(); walk.Enter()) {
    if (!walk.is_field_name() || walk.frames().back().message != NetParameter::descriptor())
      continue;
    for (const std::string_view word : kWordsOfShortNets) {
      if (walk.token().text == word) return true;
    }
  }
  return false;
}

SourceText ReadDefinitionText(const std::string& path, const Descriptor& root) {
  SourceText text(path, ReadFile(path));
  const bool is_definition =
      &root == NetParameter::descriptor() || &root == SolverParameter::descriptor();
  if (is_definition && HasShortNet(text.main_file().text, root)) Expand(root, &text);
  return text;
}

}  // namespace caffe
