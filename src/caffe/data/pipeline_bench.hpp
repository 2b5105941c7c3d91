// How fast data arrives: what `caffe data bench` measures.
#pragma once

#include <cstdint>
#include <string>

#include "caffe/data/batch_source_options.hpp"
#include "caffe/device/device.hpp"
#include "caffe/export.hpp"

namespace caffe::data {

// Images per second. Each stage includes those before it; all but the pipeline run on one thread.
struct PipelineSpeed {
  double read = 0;       // every byte of the records touched
  double parse = 0;      // and parsed, and decoded where they are compressed
  double transform = 0;  // and augmented, and written to a batch as floats
  double pipeline = 0;   // Next() with all its threads
  // The same two with channels-last batches, as convolution nets take them.
  double transform_channels_last = 0;
  double pipeline_channels_last = 0;
  double pack = 0;  // parsed, augmented and left to a GPU as bytes; 0 where records are floats
  double jpeg_decode = 0;  // libjpeg-turbo alone, on the same records; 0 unless they are JPEG
  // The device's decoder, given 64 records at a time; 0 unless it was asked for and decodes them.
  double device_jpeg_decode = 0;
  std::string device_jpeg_decoder;  // its name, or why there is none; empty: not asked for
  int threads = 0;                  // of the pipeline, besides the reader
  int batch_size = 0;
  double bytes_per_record = 0;
  uint64_t records = 0;  // in the database
  bool is_encoded = false;
  std::string image;  // "3x227x227": what the net gets
  int64_t numbers_per_image = 0;
  double packed_bytes_per_image = 0;
};

// Measures each stage of reading a Datum database for about `seconds`, and the decoder of
// options.device if that is given, which serves no other stage. Throws as BatchSource does.
CAFFE_EXPORT PipelineSpeed MeasurePipeline(const DataParameter& data,
                                           const BatchSourceOptions& options, double seconds);

// What a machine could feed by this model: threads on different cores do not slow each other, one
// thread reads, and batches cross one link to the device.
struct Machine {
  int cores = 1;
  double link_bytes_per_second = 0;  // 0: no limit
};
struct Feed {
  double images_per_second = 0;
  std::string limit;  // "decoding", "transforming", "reading" or "the link"
};
// `rate`: of one thread that does all the work, reading included.
CAFFE_EXPORT Feed FeedOf(const PipelineSpeed& speed, double rate, double bytes_per_image,
                         const Machine& machine);

// Bytes per second from the host's memory to a device. Throws as MakeDevice does.
CAFFE_EXPORT double MeasureLink(DeviceKind kind, int id, double seconds);

}  // namespace caffe::data
