// Properties of all records, derived from the first one.
#pragma once

#include "caffe/data/broken_records.hpp"
#include "caffe/data/record_source.hpp"

namespace caffe::data {

struct FirstRecord {
  ImageExtents image;   // before the transform
  ImageExtents output;  // after it
  bool is_encoded = false;
  size_t bytes = 0;
  int label_numbers = 0;  // for labels with several numbers
};

// Inspects the record that `sequence` will return next, without consuming it. Throws IoError for a
// broken record, InvalidArgument for one that does not match the source's options.
FirstRecord InspectFirstRecord(const RecordSource& source, RecordSequence* sequence,
                               BrokenRecords* broken);
// Loads its image; returns true if it has floats instead of bytes. Throws as above.
bool FirstImageHasFloats(const RecordSource& source, RecordSequence* sequence,
                         BrokenRecords* broken);

}  // namespace caffe::data
