#include "caffe/data/batch_source.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <numeric>

#include "caffe/data/parsers/broken_image.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

constexpr size_t kTasksPerParser = 16;

ColorMode ColorModeOf(const BatchSourceOptions& options) {
  if (options.transform.force_color() || options.data.force_encoded_color()) return ColorMode::kColor;
  return options.transform.force_gray() ? ColorMode::kGray : ColorMode::kAsStored;
}

// Decoding is worth a thread per core; copying small raw records is not worth a second thread.
int ChooseParsers(const DataParameter& data, size_t record_bytes, bool is_encoded) {
  const int asked = static_cast<int>(std::max(data.parser_threads(), data.threads()));
  if (asked > 0) return asked;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return is_encoded || record_bytes > (64u << 10) ? std::min(cores, 4) : 1;
}

}  // namespace

BatchSource::BatchSource(BatchSourceOptions options)
    : options_(std::move(options)),
      reader_(options_.data.source()),
      transformer_(options_.transform, options_.is_training, options_.seed, options_.layer),
      color_(ColorModeOf(options_)),
      tasks_(kTasksPerParser * 8),
      delivered_(options_.start_record) {
  Require(options_.data.batch_size() > 0, "data_param: batch_size is 0; set it to at least 1");
  Require(!options_.data.shuffle() || reader_.size() <= ~uint32_t{0}, options_.data.source(), ": too many records (",
          reader_.size(), ") to shuffle");
  const RecordView first = reader_.Next();
  reader_.Rewind();
  WithContext(StrCat(options_.data.source(), ": record 0 ('", first.key, "')"), [&] {
    DatumParser parser(color_);
    const DatumView view = parser.Parse(first.value);
    const Shape item = transformer_.OutputShape(view.channels, view.height, view.width);
    shape_ = Shape{options_.data.batch_size(), item[0], item[1], item[2]};
    num_parsers_ = ChooseParsers(options_.data, first.value.size(), view.is_interleaved);
  });
  if (options_.data.rand_skip() > 0) {
    const RandomStream random(options_.seed, StreamOf(options_.layer + "/skip"));
    random_skip_ = ToRange(random.Bits(0), options_.data.rand_skip());
    LOG(INFO) << "Skipping first " << random_skip_ << " data points.";
  }
}

BatchSource::~BatchSource() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  tasks_.Close();
  for (std::thread& thread : threads_) thread.join();
}

void BatchSource::Start() {
  slots_.resize(std::max<uint32_t>(1, options_.data.prefetch()) + 1);
  const int64_t batch = shape_[0];
  for (Slot& slot : slots_) {
    slot.data.resize(static_cast<size_t>(shape_.count()));
    slot.labels.resize(static_cast<size_t>(batch));
    slot.is_hole.resize(static_cast<size_t>(batch));
    slot.batch = {shape_, slot.data.data(), slot.labels.data()};
  }
  threads_.emplace_back([this] { ReadRecords(); });
  for (int i = 0; i < num_parsers_; ++i) threads_.emplace_back([this] { ParseRecords(); });
}

const Batch& BatchSource::Next() {
  if (threads_.empty()) Start();
  std::unique_lock lock(mutex_);
  if (held_slot_ >= 0) {
    slots_[held_slot_].is_free = true;
    held_slot_ = -1;
    changed_.notify_all();
  }
  Slot& slot = slots_[next_slot_];
  changed_.wait(lock, [&] { return error_ || (!slot.is_free && slot.missing == 0); });
  if (slot.is_free || slot.missing != 0) std::rethrow_exception(error_);
  lock.unlock();
  FillHoles(slot);
  held_slot_ = next_slot_;
  next_slot_ = (next_slot_ + 1) % static_cast<int>(slots_.size());
  delivered_ += static_cast<uint64_t>(shape_[0]);
  return slot.batch;
}

void BatchSource::Fail(std::exception_ptr error) {
  {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    is_stopping_ = true;
  }
  changed_.notify_all();
  tasks_.Close();
}

bool BatchSource::WaitForFreeSlot(int slot) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return slots_[slot].is_free || is_stopping_; });
  if (is_stopping_) return false;
  slots_[slot].is_free = false;
  slots_[slot].missing = static_cast<int>(shape_[0]);
  return true;
}

void BatchSource::ReadRecords() {
  try {
    const bool is_sharded = options_.is_training && options_.ranks > 1;
    const uint64_t step = is_sharded ? options_.ranks : 1;
    uint64_t number = options_.start_record * step + (is_sharded ? options_.rank : 0);
    if (options_.data.cache() || options_.data.shuffle()) keys_ = reader_.Keys();
    SkipTo(number);
    for (int slot = 0;; slot = (slot + 1) % static_cast<int>(slots_.size())) {
      if (!WaitForFreeSlot(slot)) return;
      for (int position = 0; position < shape_[0]; ++position, number += step) {
        if (!tasks_.Push({RecordAt(number), number, slot, position})) return;
        for (uint64_t skip = 1; skip < step && keys_.empty(); ++skip) reader_.Next();
      }
    }
  } catch (...) {
    Fail(std::current_exception());
  }
}

// Brings the sequential cursor to a record.
void BatchSource::SkipTo(uint64_t number) {
  if (!keys_.empty()) return;
  const uint64_t skip = (number + random_skip_) % reader_.size();
  for (uint64_t i = 0; i < skip; ++i) reader_.Next();
}

RecordView BatchSource::RecordAt(uint64_t number) {
  const uint64_t place = number + random_skip_;
  const uint64_t epoch = place / reader_.size(), index = place % reader_.size();
  if (index == 0 && epoch > 0 && options_.is_training) LOG(INFO) << "Restarting data prefetching from start.";
  if (keys_.empty()) return reader_.Next();
  if (options_.data.shuffle() && epoch != epoch_of_order_) Shuffle(epoch);
  const uint64_t at = options_.data.shuffle() ? order_[index] : index;
  if (!options_.data.cache()) return reader_.Find(keys_[at]);
  if (cached_.empty()) cached_.resize(keys_.size());
  if (cached_[at].empty()) cached_[at] = reader_.Find(keys_[at]).value;
  return {keys_[at], cached_[at]};
}

// The order of an epoch (Fisher and Yates 1938) follows from seed, layer and epoch alone.
void BatchSource::Shuffle(uint64_t epoch) {
  order_.resize(keys_.size());
  std::iota(order_.begin(), order_.end(), 0u);
  const RandomStream random(options_.seed, StreamOf(options_.layer + "/shuffle"));
  for (size_t i = order_.size() - 1; i > 0; --i) {
    std::swap(order_[i], order_[ToRange(random.Bits(i, epoch), static_cast<uint32_t>(i + 1))]);
  }
  epoch_of_order_ = epoch;
}

void BatchSource::ParseRecords() {
  try {
    DatumParser parser(color_);
    while (const std::optional<Task> task = tasks_.Pop()) {
      ParseInContext(*task, parser);
      Finish(*task);
    }
  } catch (...) {
    Fail(std::current_exception());
  }
}

// The place in the database is put into words only when there is an error to say it of.
void BatchSource::ParseInContext(const Task& task, DatumParser& parser) {
  try {
    Parse(task, parser);
  } catch (const Error&) {
    const uint64_t index = (task.number + random_skip_) % reader_.size();
    WithContext(StrCat(options_.data.source(), ": record ", index, " ('", task.record.key, "')"), [] { throw; });
  }
}

void BatchSource::Parse(const Task& task, DatumParser& parser) {
  Slot& slot = slots_[task.slot];
  slot.is_hole[task.position] = 0;
  DatumView datum;
  try {
    datum = parser.Parse(task.record.value);
  } catch (const BrokenImage& error) {
    if (!options_.data.skip_broken()) throw;
    LOG(WARNING) << options_.data.source() << ": skipping record '" << task.record.key << "': " << error.what();
    ++skipped_;
    slot.is_hole[task.position] = 1;
    return;
  }
  CheckSize(datum);
  transformer_.Transform(datum, task.number, slot.data.data() + task.position * shape_.count(1));
  slot.labels[task.position] = static_cast<float>(datum.label);
}

void BatchSource::CheckSize(const DatumView& datum) const {
  const bool is_cropped = options_.transform.crop_size() > 0;
  const bool has_size = is_cropped || (datum.height == shape_[2] && datum.width == shape_[3]);
  if (datum.channels == shape_[1] && has_size && transformer_.Accepts(datum)) return;
  const Shape item = transformer_.OutputShape(datum.channels, datum.height, datum.width);
  Require(item[0] == shape_[1] && item[1] == shape_[2] && item[2] == shape_[3], "its image gives ", item,
          ", those before ", Shape{shape_[1], shape_[2], shape_[3]},
          "; images of one database must have one size: resize them, or set crop_size");
}

void BatchSource::Finish(const Task& task) {
  bool is_complete = false;
  {
    std::lock_guard lock(mutex_);
    is_complete = --slots_[task.slot].missing == 0;
  }
  if (is_complete) changed_.notify_all();
}

// A broken image is replaced by the good one before it in the batch, or else the first good one.
void BatchSource::FillHoles(Slot& slot) {
  const auto first_good = std::find(slot.is_hole.begin(), slot.is_hole.end(), 0);
  if (first_good == slot.is_hole.end()) {
    throw IoError(options_.data.source() + ": every image of a batch is broken");
  }
  int64_t good = first_good - slot.is_hole.begin();
  const int64_t item = shape_.count(1);
  for (int64_t i = 0; i < shape_[0]; ++i) {
    if (slot.is_hole[i] == 0) {
      good = i;
      continue;
    }
    std::copy_n(slot.data.data() + good * item, item, slot.data.data() + i * item);
    slot.labels[i] = slot.labels[good];
  }
}

}  // namespace caffe::data
