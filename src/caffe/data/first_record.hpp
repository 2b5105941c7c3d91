// What the first record of a database says about all of them.
#pragma once

#include "caffe/data/broken_records.hpp"
#include "caffe/data/record_source.hpp"

namespace caffe::data {

struct FirstRecord {
  ImageExtents image;   // before the transform
  ImageExtents output;  // after it
  bool is_encoded = false;
  size_t bytes = 0;
  int label_numbers = 0;  // of a label of several numbers
};

// Looks at the record that `sequence` gives next, which it then still gives. Throws IoError for a
// record that is broken, InvalidArgument for one that does not fit the source's options.
FirstRecord InspectFirstRecord(const RecordSource& source, RecordSequence* sequence,
                               BrokenRecords* broken);
// Whether its image is of floats, not bytes; loads it. Throws as above.
bool FirstImageHasFloats(const RecordSource& source, RecordSequence* sequence,
                         BrokenRecords* broken);

}  // namespace caffe::data
