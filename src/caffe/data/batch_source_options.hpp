// Settings of the reading layer, for any kind of records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "caffe/device/device.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

struct BatchSourceOptions {
  TransformationParameter transform;
  bool train = false;
  uint64_t seed = 0;
  std::string layer;  // the layer's name: two layers draw different random numbers
  // In training, ranks alternate record by record, otherwise batch by batch; all must have the same
  // seed.
  int rank = 0;
  int ranks = 1;
  // See DataPlace; only if the source starts with its first record.
  bool whole_epochs = false;
  uint64_t start_record = 0;  // records_consumed() of the resumed run
  bool with_label = true;
  // Requests batches of bytes (BatchSource::device_transform()): crop, mirror, mean and scale are
  // then left to the device, if possible.
  bool leave_transform = false;
  // May decode JPEG files (data/parsers/jpeg_ahead.hpp); if null, the processor decodes them.
  std::shared_ptr<Device> device = nullptr;
  // If true, no batches will be requested: threads are not started.
  bool is_only_planned = false;
};

}  // namespace caffe::data
