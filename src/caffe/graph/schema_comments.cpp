#include "caffe/graph/schema_comments.hpp"

#include <google/protobuf/descriptor.pb.h>

#include <sstream>

#include "caffe/error.hpp"

// The compiled-in descriptors have no comments. The program therefore contains protoc's descriptor
// set of the schema, which has them (proto/CMakeLists.txt).
asm(R"(
  .pushsection .rodata
  .hidden caffe_schema_begin
  .hidden caffe_schema_end
  .global caffe_schema_begin
  .global caffe_schema_end
caffe_schema_begin:
  .incbin ")" CAFFE_SCHEMA_DESCRIPTION R"("
caffe_schema_end:
  .popsection
)");
extern "C" {
extern const char caffe_schema_begin[] __attribute__((visibility("hidden")));
extern const char caffe_schema_end[] __attribute__((visibility("hidden")));
}

namespace caffe {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;

const DescriptorPool& SchemaWithComments() {
  static const auto pool = [] {
    google::protobuf::FileDescriptorSet files;
    const bool is_parsed = files.ParseFromArray(
        caffe_schema_begin, static_cast<int>(caffe_schema_end - caffe_schema_begin));
    CAFFE_ASSERT(is_parsed, "the schema's description is damaged");
    auto made = std::make_unique<DescriptorPool>();
    for (const auto& file : files.file()) made->BuildFile(file);
    return made;
  }();
  return *pool;
}

std::string OnOneLine(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace

std::string CommentOf(const FieldDescriptor& field) {
  const FieldDescriptor* described = SchemaWithComments().FindFieldByName(field.full_name());
  google::protobuf::SourceLocation place;
  if (described == nullptr || !described->GetSourceLocation(&place)) return "";
  return OnOneLine(place.leading_comments + " " + place.trailing_comments);
}

}  // namespace caffe
