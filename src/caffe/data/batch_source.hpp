// BatchSource: the input of data layers, an endless sequence of transformed batches that threads
// prepare ahead.
//
//     BatchSource source(MakeDatumSource(layer.data_param(), options), options);
//     const Batch& batch = source.Next();
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "caffe/core/fork.hpp"
#include "caffe/data/batch.hpp"
#include "caffe/data/batch_source_options.hpp"
#include "caffe/data/record_sequence.hpp"
#include "caffe/data/record_source.hpp"
#include "caffe/device/stream.hpp"
#include "caffe/shape.hpp"

namespace caffe::data {

// Threads parse, decode and transform records directly into their places in a batch, so that the
// number of threads affects neither the contents of a batch nor its order. All calls must come from
// one thread.
class BatchSource {
 public:
  struct Stats {
    uint64_t batches = 0;            // returned so far
    uint64_t records_per_epoch = 0;  // 0: unknown
    uint64_t broken_records = 0;     // replaced by others, with skip_broken
    double wait_seconds = 0;         // time that the consumer waited in Next()
    int threads = 0;
  };

  // Opens the records of a source that was created with the same options, and inspects the first
  // one. Throws InvalidArgument for a wrong definition, IoError for unreadable data.
  BatchSource(std::unique_ptr<RecordSource> records, const BatchSourceOptions& options);
  // Joins the threads; may be called at any time.
  ~BatchSource();
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // Records of a full batch.
  uint64_t batch_size() const;
  // Name of the records: a database's path.
  const std::string& name() const;
  // Shapes of the current batch; before the first Next(), of the first one. The data shape varies
  // if the images' sizes do.
  Shape data_shape() const;
  Shape label_shape() const;
  // For batches of bytes.
  Shape image_shape() const;
  // Null for batches of floats: bytes were not requested, or are not possible; the log explains
  // why.
  const DeviceTransform* device_transform() const;

  // Returns the next batch in the given form. Takes back the buffers of the previous one, after
  // waiting for the event of LendUntil(). The form is also a request: threads write batches that
  // they begin from now on in it, and only batches prepared before are converted. Rethrows errors
  // of the threads, with the record's position and key; then every later call does, too. Throws
  // InvalidArgument in a child process created by fork() after construction.
  const Batch& Next(const BatchForm& form = {});
  // A device reads the current batch until `fetched`.
  void LendUntil(std::shared_ptr<Event> fetched);
  // Makes the next Next() return the current batch again; has no effect before the first one.
  void Repeat();

  // The records of the current batch, in order; empty before the first batch.
  std::span<const RecordSequence::Item> RecordsOfBatch() const;
  // The end position of the returned batches, counted over all ranks: the cursor for resuming.
  uint64_t records_consumed() const;
  Stats stats() const;
  // See DataSupply::content().
  std::string content() const;

  // Host memory of batches and records, in bytes.
  struct Memory {
    int64_t batches = 0;
    int64_t copied = 0;  // copied records
    int64_t mapped = 0;  // mapped pages of the database file
  };
  // Expected memory after `batches` batches.
  Memory MemoryAfter(uint64_t batches) const;

 private:
  class Impl;
  ThreadedPtr<Impl> impl_;
};

}  // namespace caffe::data
