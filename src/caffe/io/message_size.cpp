#include "caffe/io/message_size.hpp"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wire_format_lite.h>

#include <limits>
#include <string>
#include <unordered_map>

namespace caffe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Pointer, string object and terminating zero.
constexpr uint64_t kStringBytes = sizeof(void*) + sizeof(std::string) + 1;

uint64_t BytesOfNumber(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return 1;
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return 8;
    default:
      return 4;
  }
}

// Bytes of memory per byte of packed numbers in the file: 1 for fixed-size numbers; for others,
// each byte may be a number.
uint64_t GrowthOf(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED32:
    case FieldDescriptor::TYPE_SFIXED64:
      return 1;
    default:
      return BytesOfNumber(field);
  }
}

class Measurement {
 public:
  explicit Measurement(CodedInputStream* input) : input_(input) {}

  uint64_t bytes() const { return bytes_; }

  // Adds the fields up to the end of the message or group; `prototype` is null if the type is
  // unknown. Returns false for an invalid wire format.
  bool AddMessage(const Message* prototype) {
    bytes_ += sizeof(void*) + BytesOfEmpty(prototype);
    while (const uint32_t tag = input_->ReadTag()) {
      if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_END_GROUP) return true;
      if (!AddField(tag, prototype)) return false;
    }
    return true;
  }

 private:
  static const FieldDescriptor* Find(int number, const Message* prototype) {
    if (prototype == nullptr) return nullptr;
    const FieldDescriptor* field = prototype->GetDescriptor()->FindFieldByNumber(number);
    return field != nullptr ? field
                            : prototype->GetReflection()->FindKnownExtensionByNumber(number);
  }

  uint64_t BytesOfEmpty(const Message* prototype) {
    if (prototype == nullptr) return sizeof(UnknownFieldSet);
    uint64_t& bytes = bytes_of_empty_[prototype];
    if (bytes == 0) bytes = prototype->SpaceUsedLong();
    return bytes;
  }

  bool AddField(uint32_t tag, const Message* prototype) {
    const FieldDescriptor* field = Find(WireFormatLite::GetTagFieldNumber(tag), prototype);
    if (field == nullptr) bytes_ += sizeof(UnknownField);
    switch (WireFormatLite::GetTagWireType(tag)) {
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return AddDelimited(field);
      case WireFormatLite::WIRETYPE_START_GROUP:
        return AddGroup();
      default:
        if (field != nullptr && field->is_repeated()) bytes_ += BytesOfNumber(*field);
        return WireFormatLite::SkipField(input_, tag);
    }
  }

  bool AddDelimited(const FieldDescriptor* field) {
    uint32_t size;
    if (!input_->ReadVarint32(&size) || size > std::numeric_limits<int>::max()) return false;
    const FieldDescriptor::CppType type =
        field != nullptr ? field->cpp_type() : FieldDescriptor::CPPTYPE_STRING;
    if (type == FieldDescriptor::CPPTYPE_MESSAGE) return AddInner(static_cast<int>(size), *field);
    const bool is_packed = type != FieldDescriptor::CPPTYPE_STRING;
    bytes_ += is_packed ? size * GrowthOf(*field) : size + kStringBytes;
    return input_->Skip(static_cast<int>(size));
  }

  bool AddInner(int size, const FieldDescriptor& field) {
    const auto [limit, depth] = input_->IncrementRecursionDepthAndPushLimit(size);
    if (depth < 0) return false;
    const bool is_whole =
        AddMessage(MessageFactory::generated_factory()->GetPrototype(field.message_type()));
    return input_->DecrementRecursionDepthAndPopLimit(limit) && is_whole;
  }

  // None of our messages has groups, so their fields are unknown.
  bool AddGroup() {
    if (!input_->IncrementRecursionDepth()) return false;
    const bool is_whole = AddMessage(nullptr);
    input_->DecrementRecursionDepth();
    return is_whole;
  }

  CodedInputStream* const input_;
  uint64_t bytes_ = 0;
  std::unordered_map<const Message*, uint64_t> bytes_of_empty_;
};

}  // namespace

uint64_t ParsedBytes(CodedInputStream* input, const Descriptor& type) {
  Measurement measurement(input);
  measurement.AddMessage(MessageFactory::generated_factory()->GetPrototype(&type));
  return measurement.bytes();
}

}  // namespace caffe
