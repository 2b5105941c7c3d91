#include "caffe/data/annotated_loader.hpp"

#include <google/protobuf/io/coded_stream.h>

#include "caffe/decode_limit.hpp"
#include "caffe/error.hpp"
#include "caffe/io/message_size.hpp"
#include "caffe/io/text_format.hpp"

namespace caffe::data {

AnnotatedLoader::AnnotatedLoader(const AnnotatedDataParameter& options, ColorMode mode)
    : label_map_file_(options.label_map_file()), decoder_(mode) {
  if (label_map_file_.empty()) return;
  LabelMap map;
  ReadTextProto(label_map_file_, &map);
  for (const LabelMapItem& item : map.item()) labels_.insert(item.label());
}

DatumView AnnotatedLoader::Parse(std::string_view value) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(value.data()),
                                               static_cast<int>(value.size()));
  CheckDecodedBytes(ParsedBytes(&input, *AnnotatedDatum::descriptor()), value.size(),
                    "an AnnotatedDatum");
  if (!record_.ParseFromArray(value.data(), static_cast<int>(value.size())) ||
      !record_.has_datum()) {
    throw IoError(StrCat(value.size(),
                         " bytes that are not an AnnotatedDatum; make the database with "
                         "convert_annoset"));
  }
  return ViewOf(record_.datum());
}

std::vector<ObjectBox> AnnotatedLoader::Boxes() const {
  std::vector<ObjectBox> boxes;
  for (const AnnotationGroup& group : record_.annotation_group()) {
    const int label = group.group_label();
    if (!labels_.empty() && labels_.count(label) == 0) {
      throw IoError(
          StrCat("an object of class ", label, ", which ", label_map_file_, " does not have"));
    }
    for (const Annotation& annotation : group.annotation()) {
      if (!annotation.has_bbox()) {
        throw IoError(
            StrCat("object ", annotation.instance_id(), " of class ", label, " has no box"));
      }
      const NormalizedBBox& box = annotation.bbox();
      boxes.push_back({label, annotation.instance_id(), box.xmin(), box.ymin(), box.xmax(),
                       box.ymax(), box.difficult()});
    }
  }
  return boxes;
}

RecordLoader::Sample AnnotatedLoader::Load(std::string_view value, uint64_t) {
  const DatumView datum = Parse(value);
  return {.image = datum.encoded ? decoder_.Decode(datum.data) : PixelsOf(datum),
          .label = static_cast<float>(datum.label),
          .boxes = Boxes()};
}

ImageExtents AnnotatedLoader::ReadExtents(std::string_view value, uint64_t) {
  const DatumView datum = Parse(value);
  return datum.encoded ? decoder_.ReadExtents(datum.data) : datum.extents;
}

bool AnnotatedLoader::IsEncoded(std::string_view value) {
  return Parse(value).encoded;
}

}  // namespace caffe::data
