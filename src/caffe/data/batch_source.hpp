// BatchSource: batches of a database, read, decoded and transformed ahead of their use.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "caffe/core/bounded_queue.hpp"
#include "caffe/core/philox.hpp"
#include "caffe/data/parsers/datum_parser.hpp"
#include "caffe/data/readers/lmdb.hpp"
#include "caffe/data/transformers/datum_transformer.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/shape.hpp"

namespace caffe::data {

struct BatchSourceOptions {
  DataParameter data;
  TransformationParameter transform;
  bool is_training = true;
  uint64_t seed = 0;
  std::string layer;            // names the random streams
  int rank = 0, ranks = 1;      // record o belongs to rank o % ranks, in training
  uint64_t start_record = 0;    // records that this rank had delivered before
};

struct Batch {
  Shape shape;  // N,C,H,W
  const float* data = nullptr;
  const float* labels = nullptr;  // N
};

// One reader thread walks the database; parser threads decode and transform straight into the
// batches' buffers. A record's place in its batch and its random draws follow from its number, so
// the thread count never changes what a batch contains. After the first batches nothing is
// allocated. Errors of any thread come out of Next().
class BatchSource {
 public:
  // Opens the database and reads its first record; starts no thread yet.
  explicit BatchSource(BatchSourceOptions options);
  ~BatchSource();
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // Of a whole batch.
  const Shape& shape() const { return shape_; }
  int num_parsers() const { return num_parsers_; }
  // The next batch; its buffers are the caller's until the next call.
  const Batch& Next();
  // Records in the batches handed out, those of earlier runs included.
  uint64_t records_delivered() const { return delivered_; }
  uint64_t records_skipped() const { return skipped_; }

 private:
  struct Task {
    RecordView record;
    uint64_t number = 0;  // of the record since the beginning of the run, over all epochs
    int slot = 0, position = 0;
  };
  struct Slot {
    std::vector<float> data, labels;
    std::vector<char> is_hole;  // broken images, filled from a neighbour
    Batch batch;
    int missing = 0;  // guarded by mutex_
    bool is_free = true;
  };

  void Start();
  void ReadRecords();
  RecordView RecordAt(uint64_t number);
  void Shuffle(uint64_t epoch);
  void SkipTo(uint64_t number);
  void ParseRecords();
  void ParseInContext(const Task& task, DatumParser& parser);
  void Parse(const Task& task, DatumParser& parser);
  void CheckSize(const DatumView& datum) const;
  void FillHoles(Slot& slot);
  bool WaitForFreeSlot(int slot);
  void Finish(const Task& task);
  void Fail(std::exception_ptr error);

  const BatchSourceOptions options_;
  LmdbReader reader_;
  DatumTransformer transformer_;
  ColorMode color_ = ColorMode::kAsStored;
  int num_parsers_ = 1;
  uint64_t random_skip_ = 0;
  Shape shape_;
  // Random access, for shuffling and caching.
  std::vector<std::string_view> keys_;
  std::vector<uint32_t> order_;
  std::vector<std::string> cached_;
  uint64_t epoch_of_order_ = ~uint64_t{0};

  std::vector<Slot> slots_;
  BoundedQueue<Task> tasks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
  int next_slot_ = 0;      // the consumer's
  int held_slot_ = -1;     // handed out by the last Next()
  uint64_t delivered_ = 0;
  std::atomic<uint64_t> skipped_{0};
};

}  // namespace caffe::data
