// Records that are AnnotatedDatum messages: an image and the boxes of the objects in it.
#pragma once

#include <set>
#include <string>

#include "caffe/data/record_loader.hpp"

namespace caffe::data {

class AnnotatedLoader final : public RecordLoader {
 public:
  // Reads label_map_file, if given. Throws IoError for a broken one.
  AnnotatedLoader(const AnnotatedDataParameter& options, ColorMode mode);

  // Throws IoError for bytes that are not an AnnotatedDatum, an annotation without a box, or a
  // class that the label map does not have.
  Sample Load(std::string_view value, uint64_t draw) override;
  ImageExtents ReadExtents(std::string_view value, uint64_t draw) override;
  bool IsEncoded(std::string_view value) override;

 private:
  DatumView Parse(std::string_view value);
  std::vector<ObjectBox> Boxes() const;

  const std::string label_map_file_;
  std::set<int> labels_;  // empty: any
  AnnotatedDatum record_;
  ImageDecoder decoder_;
};

}  // namespace caffe::data
