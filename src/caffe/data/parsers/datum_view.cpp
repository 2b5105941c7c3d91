#include "caffe/data/parsers/datum_view.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <bit>
#include <limits>

#include "caffe/error.hpp"

namespace caffe::data {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

bool ReadInt(CodedInputStream* input, int* value) {
  uint64_t number;  // negative int32 numbers take ten bytes
  if (!input->ReadVarint64(&number)) return false;
  *value = static_cast<int>(number);
  return true;
}

bool ReadBytes(CodedInputStream* input, std::string_view* bytes) {
  uint32_t size;
  if (!input->ReadVarint32(&size)) return false;
  const void* start = nullptr;
  int available = 0;
  input->GetDirectBufferPointerInline(&start, &available);
  if (size > static_cast<uint32_t>(available)) return false;
  *bytes = {static_cast<const char*>(start), size};
  return input->Skip(static_cast<int>(size));
}

bool ReadFloat(CodedInputStream* input, std::vector<float>* values) {
  uint32_t bits;
  if (!input->ReadLittleEndian32(&bits)) return false;
  values->push_back(std::bit_cast<float>(bits));
  return true;
}

bool ReadPackedFloats(CodedInputStream* input, std::vector<float>* values) {
  uint32_t size;
  if (!input->ReadVarint32(&size) || size % sizeof(float) != 0) return false;
  for (uint32_t i = 0; i < size / sizeof(float); ++i) {
    if (!ReadFloat(input, values)) return false;
  }
  return true;
}

constexpr uint32_t Tag(int field, WireFormatLite::WireType type) {
  return static_cast<uint32_t>(field) << 3 | static_cast<uint32_t>(type);
}

// Reads one field; skips unknown fields, as protobuf does.
bool ReadField(CodedInputStream* input, uint32_t tag, DatumView* datum,
               std::vector<float>* float_storage) {
  constexpr auto kVarint = WireFormatLite::WIRETYPE_VARINT;
  constexpr auto kBytes = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  switch (tag) {
    case Tag(Datum::kChannelsFieldNumber, kVarint):
      return ReadInt(input, &datum->extents.channels);
    case Tag(Datum::kHeightFieldNumber, kVarint):
      return ReadInt(input, &datum->extents.height);
    case Tag(Datum::kWidthFieldNumber, kVarint):
      return ReadInt(input, &datum->extents.width);
    case Tag(Datum::kLabelFieldNumber, kVarint):
      return ReadInt(input, &datum->label);
    case Tag(Datum::kEncodedFieldNumber, kVarint): {
      int encoded;
      if (!ReadInt(input, &encoded)) return false;
      datum->encoded = encoded != 0;
      return true;
    }
    case Tag(Datum::kDataFieldNumber, kBytes):
      return ReadBytes(input, &datum->data);
    case Tag(Datum::kFloatDataFieldNumber, WireFormatLite::WIRETYPE_FIXED32):
      return ReadFloat(input, float_storage);
    case Tag(Datum::kFloatDataFieldNumber, kBytes):
      return ReadPackedFloats(input, float_storage);
    default:
      break;
  }
  // A known field number with another type means another message (AnnotatedDatum, TensorProto).
  if (WireFormatLite::GetTagFieldNumber(tag) <= Datum::kEncodedFieldNumber) return false;
  return WireFormatLite::SkipField(input, tag);
}

void CheckExtents(const DatumView& datum, size_t float_count) {
  if (datum.encoded) {
    if (datum.data.empty()) throw IoError("an encoded Datum without data; convert the image again");
    return;
  }
  const ImageExtents& extents = datum.extents;
  if (extents.channels <= 0 || extents.height <= 0 || extents.width <= 0 ||
      int64_t{extents.channels} * extents.height > std::numeric_limits<int>::max() ||
      extents.count() > std::numeric_limits<int>::max()) {
    throw IoError(StrCat("a Datum of ", extents,
                         " (channels x height x width); each has to be positive and their product "
                         "at most ",
                         std::numeric_limits<int>::max()));
  }
  const size_t held = datum.data.empty() ? float_count : datum.data.size();
  if (held != static_cast<size_t>(extents.count())) {
    throw IoError(StrCat("a Datum of ", extents, " needs ", extents.count(), " values, but its ",
                         datum.data.empty() ? "float_data" : "data", " holds ", held,
                         "; the record is damaged"));
  }
}

// float_data is the image or, if `data` has the image, the label.
void SetFloats(std::span<const float> floats, DatumView* datum) {
  if (datum->data.empty()) {
    datum->floats = floats.data();
  } else {
    datum->label_numbers = floats;
  }
}

}  // namespace

DatumView ParseDatum(std::string_view record, std::vector<float>* float_storage) {
  if (record.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    throw IoError(StrCat("not a Datum (", record.size(), " bytes)"));
  }
  DatumView datum;
  float_storage->clear();
  CodedInputStream input(reinterpret_cast<const uint8_t*>(record.data()),
                         static_cast<int>(record.size()));
  while (input.CurrentPosition() < static_cast<int>(record.size())) {
    const int position = input.CurrentPosition();
    const uint32_t tag = input.ReadTag();
    if (tag == 0 || !ReadField(&input, tag, &datum, float_storage)) {
      throw IoError(StrCat("not a Datum (parse error at byte ", position, " of ", record.size(),
                           "); convert the data again"));
    }
  }
  CheckExtents(datum, float_storage->size());
  SetFloats(*float_storage, &datum);
  return datum;
}

DatumView ViewOf(const Datum& datum) {
  DatumView view{.extents = {datum.channels(), datum.height(), datum.width()},
                 .label = datum.label(),
                 .encoded = datum.encoded(),
                 .data = datum.data()};
  SetFloats({datum.float_data().data(), static_cast<size_t>(datum.float_data_size())}, &view);
  CheckExtents(view, static_cast<size_t>(datum.float_data_size()));
  return view;
}

ImageView PixelsOf(const DatumView& datum) {
  CAFFE_ASSERT(!datum.encoded);
  return {.extents = datum.extents,
          .bytes = datum.floats ? nullptr : reinterpret_cast<const uint8_t*>(datum.data.data()),
          .floats = datum.floats};
}

}  // namespace caffe::data
