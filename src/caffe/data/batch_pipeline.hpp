// BatchPipeline: threads that fill batches ahead of their use, and the queues between them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "caffe/core/bounded_queue.hpp"
#include "caffe/data/batch_filler.hpp"
#include "caffe/data/spare_memory.hpp"

namespace caffe::data {

// One reader thread assigns records to batches in order, and distributes each batch in chunks to
// the parser threads. The thread that fills a chunk affects neither the batch's contents nor its
// position. Buffers are reused, so that nothing is allocated once each has held the largest batch.
class BatchPipeline {
 public:
  // Objects shared by all threads; must outlive the pipeline.
  struct Parts {
    const RecordSource& source;
    const FirstRecord& first;
    const BatchFiller& filler;
    RecordSequence& sequence;
    BrokenRecords& broken;
  };

  BatchPipeline(const Parts& parts, int parsers);
  // Number of buffers: those that `reading` prefetches, and the consumer's.
  static size_t NumBuffers(const DataParameter& reading);
  // Joins the threads; may be called at any time.
  ~BatchPipeline();
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;

  // Waits for the next batch, which is valid until the next call, in the given form; batches
  // prepared from now on will have that form. Rethrows errors of the threads; no further call is
  // allowed after that.
  BatchBuffer* Next(const BatchForm& form);

 private:
  // Consecutive records of a batch; a parser takes them from the queue together.
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
  void SetForm(const BatchForm& form);
  void MakeSpares(const HostMemory& make);

  const Parts parts_;
  const int batch_size_;
  const int chunk_size_;
  std::vector<BatchBuffer> buffers_;
  BoundedQueue<BatchBuffer*> free_;   // consumer -> reader
  BoundedQueue<BatchBuffer*> ready_;  // reader -> consumer, in order; may be incomplete
  BoundedQueue<Chunk> chunks_;        // reader -> parsers
  std::atomic<bool> stopping_ = false;
  std::mutex form_mutex_;
  BatchForm form_;                  // last form that the consumer requested
  BatchBuffer* current_ = nullptr;  // held by the consumer
  SpareMemory spares_;              // of the kind that the consumer requests
  bool has_spares_ = false;
  std::vector<std::unique_ptr<RecordLoader>> loaders_;
  std::vector<std::thread> threads_;
};

}  // namespace caffe::data
