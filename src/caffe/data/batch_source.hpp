// BatchSource: what data layers read, an endless row of transformed batches prepared ahead by
// threads.
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

// Threads parse, decode and transform records straight into their places in a batch, so that the
// number of threads changes neither what a batch contains nor its order. All calls from one thread.
class BatchSource {
 public:
  struct Stats {
    uint64_t batches = 0;            // handed out
    uint64_t records_per_epoch = 0;  // 0: unknown
    uint64_t broken_records = 0;     // replaced by others, with skip_broken
    double wait_seconds = 0;         // time that Next() waited: what the consumer lost
    int threads = 0;
  };

  // Opens the records, of a source made with the same options, and looks at the first one. Throws
  // InvalidArgument for a wrong definition, IoError for data that cannot be read.
  BatchSource(std::unique_ptr<RecordSource> records, const BatchSourceOptions& options);
  // Joins the threads, at any moment.
  ~BatchSource();
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // Records of a full batch.
  uint64_t batch_size() const;
  // Of the records: a database's path.
  const std::string& name() const;
  // Shapes of the current batch; before the first Next(), of the first. The data shape changes
  // from batch to batch where images do.
  Shape data_shape() const;
  Shape label_shape() const;
  // Of batches of bytes.
  Shape image_shape() const;
  // Null where batches are of floats: not asked for, or not possible, which the log explains.
  const DeviceTransform* device_transform() const;

  // The next batch in that form; takes back the buffers of the previous one, for which it waits
  // until `fetched` of LendUntil() is reached. The form is also a request: threads write the
  // batches that they begin from now on in it, and only those prepared before a change are
  // converted. Rethrows here whatever went wrong in a thread, with the record's place and key; from
  // then on, every call does. Throws InvalidArgument in a child that fork() made after this.
  const Batch& Next(const BatchForm& form = {});
  // The current batch is read until then by a device.
  void LendUntil(std::shared_ptr<Event> fetched);
  // Lets the next Next() give the current batch again; before the first, nothing changes.
  void Repeat();

  // The records of the current batch, in order; empty before the first.
  std::span<const RecordSequence::Item> RecordsOfBatch() const;
  // How far the batches handed out reach, counted over all ranks: the cursor to resume at.
  uint64_t records_consumed() const;
  Stats stats() const;
  // See DataSupply::content().
  std::string content() const;

  // Host memory that batches and records take, in bytes.
  struct Memory {
    int64_t batches = 0;
    int64_t copied = 0;  // records that are kept
    int64_t mapped = 0;  // pages of the database's file
  };
  // After so many batches.
  Memory MemoryAfter(uint64_t batches) const;

 private:
  class Impl;
  ThreadedPtr<Impl> impl_;
};

}  // namespace caffe::data
