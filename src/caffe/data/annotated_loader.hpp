// Loads AnnotatedDatum records: an image and the boxes of the objects in it.
#pragma once

#include <set>
#include <string>

#include "caffe/data/record_loader.hpp"

namespace caffe::data {

class AnnotatedLoader final : public RecordLoader {
 public:
  // Reads label_map_file, if set. Throws IoError if it is damaged.
  AnnotatedLoader(const AnnotatedDataParameter& options, ColorMode mode);

  // Throws IoError for bytes that are not an AnnotatedDatum, for an annotation without a box, or
  // for a class that is not in the label map.
  Sample Load(std::string_view value, uint64_t draw) override;
  ImageExtents ReadExtents(std::string_view value, uint64_t draw) override;
  bool IsEncoded(std::string_view value) override;

 private:
  DatumView Parse(std::string_view value);
  std::vector<ObjectBox> Boxes() const;

  const std::string label_map_file_;
  std::set<int> labels_;  // empty: any label
  AnnotatedDatum record_;
  ImageDecoder decoder_;
};

}  // namespace caffe::data
