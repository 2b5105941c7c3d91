// What the layer that reads batches says about them, whatever the records are.
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
  // In training, ranks take turns record by record, else batch by batch; all of them need the same
  // seed.
  int rank = 0;
  int ranks = 1;
  // See DataPlace; of a source that begins with its first record.
  bool whole_epochs = false;
  uint64_t start_record = 0;  // records_consumed() of the run that is resumed
  bool with_label = true;
  // Batches are of bytes where that is possible (BatchSource::device_transform()): crop, mirror,
  // mean and scale are left to the device.
  bool leave_transform = false;
  // May decode JPEG files (data/parsers/jpeg_ahead.hpp); null: the processor does.
  std::shared_ptr<Device> device = nullptr;
  // No batch will be asked for: threads are not started.
  bool is_only_planned = false;
};

}  // namespace caffe::data
