#include "caffe/data/record_sequence.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "caffe/core/available_memory.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

constexpr size_t kCacheBlockBytes = size_t{16} << 20;

}  // namespace

RecordSequence::RecordSequence(const RecordSequenceOptions& options)
    : options_(options),
      reader_(options.open()),
      shuffle_random_(options.seed, StreamOf(options.stream + "/shuffle")),
      count_(reader_->count()),
      number_(options.start) {
  if (count_ == 0) throw IoError(options.source + ": has no records; fill it first");
  CAFFE_ASSERT(options.rank < options.ranks, options.rank, " of ", options.ranks);
  for (uint64_t rank = 0; rank < options.rank; ++rank) number_ += BlockAt(number_);
  if (options.shuffle || options.cache || reader_->has_index()) {
    BuildIndex();
  } else {
    const uint64_t position = options.skip + number_;
    cursor_position_ = position - position % count_;
    reader_->First(&cursor_record_);
  }
}

uint64_t RecordSequence::BytesOf(uint64_t records) const {
  const double part = std::min(1.0, static_cast<double>(records) / static_cast<double>(count_));
  return static_cast<uint64_t>(part * static_cast<double>(reader_->mapped_bytes()));
}

// Building the index reads each record.
uint64_t RecordSequence::MappedBytesAfter(uint64_t records) const {
  return BytesOf(is_indexed_ ? count_ : records);
}

uint64_t RecordSequence::CopiedBytesAfter(uint64_t records) const {
  const uint64_t index = records_.size() * sizeof(Record) + order_.size() * sizeof(uint32_t);
  return index + (caches_ ? BytesOf(options_.precache ? count_ : records) : 0);
}

void RecordSequence::BuildIndex() {
  Require(count_ <= std::numeric_limits<uint32_t>::max(), options_.source, ": ", count_,
          " records are too many for shuffle or cache; switch them off");
  is_indexed_ = true;
  if (options_.cache || !reader_->has_index()) ReadAllRecords();
  order_.resize(count_);
  epoch_ = (options_.skip + number_) / count_;
  StartEpoch(epoch_);
  caches_ = options_.cache && FitsInMemory();
  if (!caches_) return;
  is_cached_.resize(count_);
  if (!options_.precache) return;
  for (uint64_t index = 0; index < count_; ++index) CacheRecord(index);
}

void RecordSequence::ReadAllRecords() {
  if (count_ <= reader_->mapped_bytes()) records_.reserve(count_);  // unless the count is damaged
  Record record;
  bool found = reader_->First(&record);
  // Pages of a damaged database may form a cycle.
  for (; found && records_.size() < count_; found = reader_->Next(&record)) {
    records_.push_back(record);
  }
  if (found || records_.size() != count_) ThrowWrongCount(records_.size(), found);
}

Record RecordSequence::RecordAt(uint64_t index) {
  if (!records_.empty()) return records_[index];
  Record record;
  if (!reader_->At(index, &record)) ThrowWrongCount(index, /*are_more=*/false);
  return record;
}

bool RecordSequence::FitsInMemory() const {
  uint64_t bytes = 0;
  for (const Record& record : records_) bytes += record.value.size();
  const std::optional<uint64_t> available = AvailableMemory();
  if (!available || bytes < *available / 10 * 8) return true;
  LOG(WARNING) << options_.source << ": not cached: its records have " << (bytes >> 20)
               << " MiB, but only " << (*available >> 20) << " MiB of memory are available";
  return false;
}

void RecordSequence::CacheRecord(uint64_t index) {
  const bool is_in_memory = is_cached_[index] || records_[index].owner != nullptr;
  if (is_in_memory) return;
  std::string_view& value = records_[index].value;
  if (cached_blocks_.empty() ||
      cached_blocks_.back().capacity() - cached_blocks_.back().size() < value.size()) {
    cached_blocks_.emplace_back().reserve(std::max(kCacheBlockBytes, value.size()));
  }
  std::string& block = cached_blocks_.back();
  const size_t start = block.size();
  block.append(value);  // does not reallocate, so earlier records keep their address
  value = std::string_view(block).substr(start);
  is_cached_[index] = true;
}

void RecordSequence::ThrowWrongCount(uint64_t found, bool are_more) const {
  throw IoError(StrCat(options_.source, ": is damaged: it says that it has ", count_,
                       " records, and ", are_more ? "more than " : "", found,
                       " can be found; make it again"));
}

// Fisher-Yates shuffle with numbers that depend only on seed, stream and epoch.
void RecordSequence::StartEpoch(uint64_t epoch) {
  epoch_ = epoch;
  std::iota(order_.begin(), order_.end(), 0u);
  if (!options_.shuffle) return;
  for (uint64_t i = count_ - 1; i > 0; --i) {
    const uint32_t other = ToRange(shuffle_random_.Bits(i, epoch), static_cast<uint32_t>(i) + 1);
    std::swap(order_[i], order_[other]);
  }
}

void RecordSequence::StepCursor() {
  const uint64_t index = ++cursor_position_ % count_;
  const bool found = reader_->Next(&cursor_record_);
  if (found == (index == 0)) ThrowWrongCount(found ? count_ : index, found);
  if (found) return;
  reader_->First(&cursor_record_);
  AnnounceRewind();
}

void RecordSequence::AnnounceRewind() const {
  LOG_IF(INFO, options_.announce_rewinds) << "Restarting data prefetching from start.";
}

RecordSequence::Item RecordSequence::Next() {
  std::lock_guard lock(mutex_);
  const Item item = Locate(number_);
  const uint64_t block = BlockAt(number_ - taken_of_block_);
  ++number_;
  if (++taken_of_block_ == block) {
    for (uint64_t rank = 1; rank < options_.ranks; ++rank) number_ += BlockAt(number_);
    taken_of_block_ = 0;
  }
  return item;
}

uint64_t RecordSequence::LeftOfBlock() {
  std::lock_guard lock(mutex_);
  return BlockAt(number_ - taken_of_block_) - taken_of_block_;
}

// Number of records in the block that begins at `number`.
uint64_t RecordSequence::BlockAt(uint64_t number) const {
  if (!options_.whole_epochs) return options_.block;
  return std::min(options_.block, count_ - number % count_);
}

RecordSequence::Item RecordSequence::Peek() {
  std::lock_guard lock(mutex_);
  return Locate(number_);
}

// `number` must never decrease between calls.
RecordSequence::Item RecordSequence::Locate(uint64_t number) {
  const uint64_t position = options_.skip + number;
  Item item{.number = number, .index = position % count_};
  if (!is_indexed_) {
    while (cursor_position_ < position) StepCursor();
    item.record = cursor_record_;
    return item;
  }
  if (const uint64_t epoch = position / count_; epoch != epoch_) {
    AnnounceRewind();
    StartEpoch(epoch);
  }
  item.index = order_[item.index];
  if (caches_) CacheRecord(item.index);
  item.record = RecordAt(item.index);
  return item;
}

std::string RecordSequence::SourceOf(const Item& item) const {
  const std::string source = reader_->SourceOf(item.record);
  return source.empty() ? options_.source : source;
}

RecordSequence::Item RecordSequence::After(const Item& item) {
  std::lock_guard lock(mutex_);
  Item next{.number = item.number, .index = (item.index + 1) % count_};
  if (is_indexed_) {
    next.record = RecordAt(next.index);
    return next;
  }
  if (!side_reader_) side_reader_ = options_.open();
  side_reader_->After(item.record, &next.record);
  return next;
}

std::string Describe(const RecordSequence& sequence, const RecordSequence::Item& item) {
  const std::string key = StrCat("'", Printable(item.record.key), "'");
  const std::string source = sequence.SourceOf(item);
  return source == sequence.source() ? StrCat(source, ": record ", item.index, " (", key, ")")
                                     : StrCat(source, ": record ", key);
}

}  // namespace caffe::data
