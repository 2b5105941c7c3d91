#include "tools/caffe/stored_record.hpp"

#include "caffe/data/parsers/datum_view.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {
namespace {

// The first field of an AnnotatedDatum is a message, that of a Datum a number.
bool IsAnnotated(std::string_view value) {
  return value.starts_with('\x0a');
}

std::string EncodingOf(const data::DatumView& datum) {
  if (!datum.encoded) return datum.floats != nullptr ? "float" : "raw";
  const std::string format = data::ImageFormatOf(datum.data);
  return format.empty() ? "other" : format;
}

void ReadImage(const data::DatumView& datum, bool decode, StoredRecord* record) {
  record->encoding = EncodingOf(datum);
  record->extents = datum.extents;
  if (!datum.encoded) return;
  data::ImageDecoder decoder(data::ColorMode::kAsStored);
  record->extents = decode ? decoder.Decode(datum.data).extents : decoder.ReadExtents(datum.data);
}

void ReadAnnotated(std::string_view value, bool decode, StoredRecord* record) {
  AnnotatedDatum annotated;
  if (!annotated.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    throw IoError(StrCat(value.size(), " bytes that are not an AnnotatedDatum"));
  }
  ReadImage(data::ViewOf(annotated.datum()), decode, record);
  record->has_boxes = annotated.type() == AnnotatedDatum::BBOX;
  if (!record->has_boxes) record->labels.push_back(annotated.datum().label());
  for (const AnnotationGroup& group : annotated.annotation_group()) {
    record->labels.insert(record->labels.end(), group.annotation_size(), group.group_label());
  }
}

}  // namespace

StoredRecord ReadStoredRecord(std::string_view value, bool decode) {
  StoredRecord record{.bytes = value.size()};
  if (IsAnnotated(value)) {
    ReadAnnotated(value, decode, &record);
    return record;
  }
  std::vector<float> floats;
  const data::DatumView datum = data::ParseDatum(value, &floats);
  record.labels = {datum.label};
  ReadImage(datum, decode, &record);
  return record;
}

std::unique_ptr<data::RecordReader> OpenDatabase(const std::string& path) {
  Require(!path.empty(), "give a database");
  auto reader = data::OpenRecordReader(DataParameter().backend(), path);
  if (reader->count() == 0) throw IoError(path + ": the database has no records");
  return reader;
}

}  // namespace caffe::tools
