// BatchPipeline: threads that fill batches ahead of their use, and the queues between them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "caffe/core/bounded_queue.hpp"
#include "caffe/data/batch_filler.hpp"

namespace caffe::data {

// One reader thread deals records to batches in their order, and each batch in parts to the parser
// threads. Which thread fills which part decides neither what a batch contains nor its place. The
// buffers go round, so that nothing is allocated once each has seen the largest batch.
class BatchPipeline {
 public:
  // What all threads use; it outlives the pipeline.
  struct Parts {
    const RecordSource& source;
    const FirstRecord& first;
    const BatchFiller& filler;
    RecordSequence& sequence;
    BrokenRecords& broken;
  };

  BatchPipeline(const Parts& parts, int parsers);
  // Buffers that go round: those that `reading` has filled ahead, and the consumer's.
  static size_t NumBuffers(const DataParameter& reading);
  // Joins the threads, at any moment.
  ~BatchPipeline();
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;

  // Waits for the next batch, which is the caller's until the call after it, in that form; batches
  // prepared from now on will have it. Rethrows what went wrong in a thread; no further call may
  // follow that.
  BatchBuffer* Next(const BatchForm& form);

 private:
  // Some consecutive records of a batch: what a parser takes from the queue.
  struct Chunk {
    BatchBuffer* buffer = nullptr;
    int begin = 0;
    int end = 0;
  };

  void Start(int parsers);
  void Stop();
  void RunReader(RecordLoader* loader);
  void Deal(BatchBuffer* buffer);
  bool DealOut(BatchBuffer* buffer);
  ImageExtents OutputOf(RecordSequence::Item* first, RecordLoader* loader);
  void RunParser(RecordLoader* loader);
  void LoadAhead(const Chunk& chunk, RecordLoader* loader);
  void FillChunk(const Chunk& chunk, RecordLoader* loader, std::vector<float>* floats);
  BatchForm form();

  const Parts parts_;
  const int batch_size_;
  const int chunk_size_;
  std::vector<BatchBuffer> buffers_;
  BoundedQueue<BatchBuffer*> free_;   // consumer -> reader
  BoundedQueue<BatchBuffer*> ready_;  // reader -> consumer, in order; may still be in work
  BoundedQueue<Chunk> chunks_;        // reader -> parsers
  std::atomic<bool> stopping_ = false;
  std::mutex form_mutex_;
  BatchForm form_;                  // that the consumer last asked for
  BatchBuffer* current_ = nullptr;  // the consumer's
  std::vector<std::unique_ptr<RecordLoader>> loaders_;
  std::vector<std::thread> threads_;
};

}  // namespace caffe::data
