// What the Data and ImageData layers read: an endless row of transformed batches, prepared ahead by
// threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"
#include "caffe/shape.hpp"

namespace caffe::data {

struct BatchSourceOptions {
  DataParameter data;
  // Set: records are the lines of an image list, and `data` follows from this.
  std::optional<ImageDataParameter> images;
  // Set: records are frames, `data` says how many make a batch.
  std::optional<VideoDataParameter> video;
  // Set: records are boxes cut out of images, and `data` follows from this.
  std::optional<WindowDataParameter> windows;
  // Set: records are images with boxes, and labels are rows of boxes.
  std::optional<AnnotatedDataParameter> annotated;
  TransformationParameter transform;
  bool train = false;
  uint64_t seed = 0;
  std::string layer;  // the layer's name: two layers draw different random numbers
  // In training, ranks deal the records among themselves, else whole batches; all of them need the
  // same seed.
  int rank = 0;
  int ranks = 1;
  uint64_t start_record = 0;  // records_consumed() of the run that is resumed
  bool with_label = true;
  // Batches are of bytes where that can be (BatchSource::device_transform()): crop, mirror, mean
  // and scale are left to the device.
  bool leave_transform = false;
};

// What a device does with batches of bytes: ops::TransformImages and its third operand.
struct DeviceTransform {
  float scale = 1;
  Shape mean_shape;                                // C or C,H,W
  std::shared_ptr<const std::vector<float>> mean;  // null: none
};

// Borrowed from the source until its next Next().
struct Batch {
  const float* data = nullptr;      // 64-byte aligned; null in batches of bytes
  const uint8_t* images = nullptr;  // N times C*H*W of image_shape
  const float* windows = nullptr;   // N times ops::ImageWindow
  const float* labels = nullptr;    // null without labels
  Shape data_shape;                 // N,C,H,W
  Shape image_shape;                // of batches of bytes: N,C,H,W before the crop
  // N; of annotated records 1x1xRx8 with rows (item in the batch, class, instance, xmin, ymin,
  // xmax, ymax, difficult), unused rows -1 throughout. R only grows, so that a net seldom changes.
  Shape label_shape;
  int size = 0;
};

// Threads parse, decode and transform records straight into their places in a batch, so that the
// number of threads changes neither what a batch contains nor its order. All memory is recycled:
// once each buffer has seen the largest batch, nothing is allocated.
class BatchSource {
 public:
  struct Stats {
    uint64_t batches = 0;         // handed out
    uint64_t broken_records = 0;  // replaced by others, with skip_broken
    double wait_seconds = 0;      // time that Next() waited: what the consumer lost
    int threads = 0;
  };

  // Opens the database and looks at its first record. Throws InvalidArgument for a wrong
  // definition, IoError for data that cannot be read.
  explicit BatchSource(const BatchSourceOptions& options);
  // Joins the threads, at any moment.
  ~BatchSource();
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // Shapes of the current batch; before the first Next(), of the first. The data shape changes
  // from batch to batch where images do.
  Shape data_shape() const;
  Shape label_shape() const;
  // Of batches of bytes.
  Shape image_shape() const;
  // Null where batches are of floats: not asked for, or not possible, which the log explains.
  const DeviceTransform* device_transform() const;

  // The next batch; takes back the buffers of the previous one. Rethrows here whatever went wrong
  // in a thread, with the record's place and key; from then on, every call does.
  const Batch& Next();

  // How far the batches handed out reach, counted over all ranks: the cursor to resume at.
  uint64_t records_consumed() const;
  Stats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caffe::data
