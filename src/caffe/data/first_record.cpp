#include "caffe/data/first_record.hpp"

#include <glog/logging.h>

namespace caffe::data {

FirstRecord InspectFirstRecord(const RecordSource& source, RecordSequence* sequence,
                               BrokenRecords* broken) {
  const std::unique_ptr<RecordLoader> loader = source.MakeLoader();
  RecordSequence::Item item = sequence->Peek();
  FirstRecord first;
  broken->Replace(&item, [&] {
    first.image = loader->ReadExtents(item.record.value, item.number);
    first.output = source.transformer().OutputExtents(first.image);
    first.label_numbers = loader->CountLabelNumbers(item.record.value);
  });
  first.is_encoded = loader->IsEncoded(item.record.value);
  first.bytes = item.record.value.size();
  broken->ResetCount();  // the first batch counts the same ones again
  if (!first.is_encoded && source.color_mode() != ColorMode::kAsStored) {
    LOG(WARNING) << sequence->source() << ": force_color, force_gray and force_encoded_color "
                 << "have no effect on records that are not encoded";
  }
  return first;
}

bool FirstImageHasFloats(const RecordSource& source, RecordSequence* sequence,
                         BrokenRecords* broken) {
  const std::unique_ptr<RecordLoader> loader = source.MakeLoader();
  RecordSequence::Item item = sequence->Peek();
  const bool has_floats = broken->Replace(
      &item, [&] { return loader->Load(item.record.value, item.number).image.floats != nullptr; });
  broken->ResetCount();
  return has_floats;
}

}  // namespace caffe::data
