// Measures data throughput for `caffe data bench`.
#pragma once

#include <cstdint>
#include <string>

#include "caffe/data/batch_source_options.hpp"
#include "caffe/device/device.hpp"
#include "caffe/export.hpp"

namespace caffe::data {

// Images per second. Each stage includes those before it; all but the pipeline run on one thread.
struct PipelineSpeed {
  double read = 0;       // touches every byte of the records
  double parse = 0;      // also parses and, if compressed, decodes
  double transform = 0;  // also augments and writes floats to a batch
  double pipeline = 0;   // Next() with all its threads
  // The same two with channels-last batches, as in convolutional nets.
  double transform_channels_last = 0;
  double pipeline_channels_last = 0;
  double pack = 0;         // parsed, augmented and left to a GPU as bytes; 0 if records have floats
  double jpeg_decode = 0;  // libjpeg-turbo alone, on the same records; 0 unless they are JPEG
  // The device's decoder with 64 records at a time; 0 unless requested and able to decode them.
  double device_jpeg_decode = 0;
  std::string device_jpeg_decoder;  // its name, or why there is none; empty: not requested
  int threads = 0;                  // of the pipeline, in addition to the reader
  int batch_size = 0;
  double bytes_per_record = 0;
  uint64_t records = 0;  // in the database
  bool is_encoded = false;
  std::string image;  // "3x227x227": the net's input
  int64_t numbers_per_image = 0;
  double packed_bytes_per_image = 0;
};

// Measures each stage of reading a Datum database for about `seconds` each, and the decoder of
// options.device if set, which is not used in other stages. Throws like BatchSource.
CAFFE_EXPORT PipelineSpeed MeasurePipeline(const DataParameter& data,
                                           const BatchSourceOptions& options, double seconds);

// Model of a machine: threads on different cores do not slow each other down, a single thread
// reads, and batches use one link to the device.
struct Machine {
  int cores = 1;
  double link_bytes_per_second = 0;  // 0: no limit
};
struct Feed {
  double images_per_second = 0;
  std::string limit;  // "decoding", "transforming", "reading" or "the link"
};
// `rate`: images per second of one thread that does all the work, including reading.
CAFFE_EXPORT Feed FeedOf(const PipelineSpeed& speed, double rate, double bytes_per_image,
                         const Machine& machine);

// Bytes per second from host memory to a device. Throws like MakeDevice.
CAFFE_EXPORT double MeasureLink(DeviceKind kind, int id, double seconds);

}  // namespace caffe::data
