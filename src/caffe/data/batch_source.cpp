#include "caffe/data/batch_source.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "caffe/core/bounded_queue.hpp"
#include "caffe/core/philox.hpp"
#include "caffe/core/start_thread.hpp"
#include "caffe/data/annotated_loader.hpp"
#include "caffe/data/augmenting_loader.hpp"
#include "caffe/data/image_file_loader.hpp"
#include "caffe/data/readers/image_list_reader.hpp"
#include "caffe/data/readers/video_reader.hpp"
#include "caffe/data/record_loader.hpp"
#include "caffe/data/record_sequence.hpp"
#include "caffe/data/transformers/datum_transformer.hpp"
#include "caffe/data/window_loader.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/images.hpp"

namespace caffe::data {
namespace {

// Records that one thread takes at a time, at most: few enough to share a batch evenly.
constexpr int kLargestChunk = 64;
// Raw records below this size are transformed faster than threads hand them over.
constexpr size_t kSmallRecordBytes = size_t{32} << 10;
constexpr unsigned kMostAutomaticThreads = 4;
// Columns of a label that is rows of boxes: item, class, instance, four corners, difficult.
constexpr int64_t kBoxColumns = 8;
// Broken records in a row after which the database itself is taken to be broken.
constexpr uint64_t kMostBrokenInARow = 1000;

// Numbers at 64-byte boundaries; grows and never shrinks.
template <typename T>
class AlignedArray {
 public:
  T* get() const { return elements_.get(); }

  void Reserve(size_t count) {
    if (count <= capacity_) return;
    elements_.reset();
    elements_.reset(static_cast<T*>(::operator new[](count * sizeof(T), kAlignment)));
    capacity_ = count;
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Deleter {
    void operator()(T* elements) const { ::operator delete[](elements, kAlignment); }
  };

  std::unique_ptr<T[], Deleter> elements_;
  size_t capacity_ = 0;
};

// A batch on its way round: filled with records by the reader, with floats by the parsers, read by
// the consumer, given back.
struct BatchBuffer {
  std::vector<RecordSequence::Item> items;
  ImageExtents extents;        // of every image after the transform
  ImageExtents image_extents;  // of batches of bytes: before it
  AlignedArray<float> data;
  // Of batches of bytes, in place of `data`.
  AlignedArray<uint8_t> images;
  std::vector<float> windows;
  std::vector<float> labels;
  std::vector<std::vector<ObjectBox>> boxes;  // of each item of annotated records
  Batch batch;

  std::mutex mutex;
  std::condition_variable finished;
  int chunks_left = 0;
  // Of the first bad record in the batch, so that the message does not depend on timing.
  std::exception_ptr error;
  int error_slot = 0;
};

// Some consecutive records of a batch: what a parser thread takes from the queue.
struct Chunk {
  BatchBuffer* buffer = nullptr;
  int begin = 0;
  int end = 0;
};

uint64_t ChooseSkip(const BatchSourceOptions& options, const DataParameter& data) {
  const uint32_t most = data.rand_skip();
  if (most == 0) return 0;
  const RandomStream random(options.seed, StreamOf(options.layer + "/rand_skip"));
  const uint32_t skip = ToRange(random.Bits(0), most);
  LOG(INFO) << "Skipping first " << skip << " data points.";
  return skip;
}

// What an image list or a window file says in other words, or data_param as it is.
DataParameter DataOptions(const BatchSourceOptions& options) {
  if (options.windows) {
    DataParameter data;
    data.set_source(options.windows->source());
    data.set_batch_size(options.windows->batch_size());
    return data;
  }
  if (options.video) {
    DataParameter data = options.data;
    data.set_source(NameOfVideo(*options.video));
    return data;
  }
  if (!options.images) return options.data;
  const ImageDataParameter& images = *options.images;
  Require(!images.source().empty(),
          "image_data_param has no source; give a text file with lines \"path label\"");
  DataParameter data;
  data.set_source(images.source());
  data.set_batch_size(images.batch_size());
  data.set_shuffle(images.shuffle());
  data.set_rand_skip(images.rand_skip());
  data.set_threads(images.threads());
  return data;
}

// Windows are cut, scaled and freed of their mean by their loader.
TransformationParameter TransformOf(const BatchSourceOptions& options) {
  return options.windows ? TransformationParameter() : options.transform;
}

std::shared_ptr<const WindowSet> MakeWindowSet(const BatchSourceOptions& options) {
  if (!options.windows) return nullptr;
  const bool deals = options.train && options.ranks > 1;
  return std::make_shared<WindowSet>(*options.windows, options.transform,
                                     deals ? static_cast<uint64_t>(options.ranks) : 1, options.seed,
                                     options.layer + "/windows");
}

std::unique_ptr<RecordLoader> MakeRecordLoader(const BatchSourceOptions& options, ColorMode mode) {
  if (options.images) return std::make_unique<ImageFileLoader>(*options.images);
  if (options.annotated) return std::make_unique<AnnotatedLoader>(*options.annotated, mode);
  return std::make_unique<DatumLoader>(mode);
}

// Why batches cannot be of bytes; empty when they can.
std::string WhyHostTransforms(const BatchSourceOptions& options, bool augments, bool has_floats) {
  if (options.windows) return "windows are cut out of their images and scaled there";
  if (augments) return "resizing, distortion, expansion, sampling and noise happen there";
  if (has_floats) return "the records are floats, not bytes";
  return "";
}

RandomStream AugmentationStream(const BatchSourceOptions& options) {
  const int64_t own_seed = options.transform.random_seed();
  return {own_seed >= 0 ? static_cast<uint64_t>(own_seed) : options.seed,
          StreamOf(options.layer + "/augment")};
}

bool IsCamera(const BatchSourceOptions& options) {
  return options.video && !IsFilm(*options.video);
}

// Frames come in their order, and a camera's only once.
void CheckVideo(const BatchSourceOptions& options) {
  Require(!options.data.shuffle() && !options.data.cache(), NameOfVideo(*options.video),
          ": data_param has shuffle or cache, but frames are read in their order; leave them out");
  Require(!IsCamera(options) || options.ranks == 1, NameOfVideo(*options.video), ": cannot serve ",
          options.ranks, " workers; a camera is open once");
}

const char* NameOfParam(const BatchSourceOptions& options) {
  if (options.images) return "image_data_param";
  if (options.windows) return "window_data_param";
  return "data_param";
}

RecordSequenceOptions SequenceOptions(const BatchSourceOptions& options) {
  const DataParameter data = DataOptions(options);
  if (options.video) CheckVideo(options);
  Require(!data.source().empty(), "data_param has no source; give the folder of the database");
  Require(data.batch_size() > 0, NameOfParam(options), " has no batch_size; give a positive one");
  Require(data.batch_size() <= 1u << 24, NameOfParam(options), ".batch_size is ", data.batch_size(),
          "; lower it");
  Require(data.prefetch() <= 1u << 16, "data_param.prefetch is ", data.prefetch(),
          " batches; lower it");
  CAFFE_ASSERT(0 <= options.rank && options.rank < options.ranks, options.rank);
  const auto open = [backend = data.backend(), source = data.source(),
                     is_list = options.images.has_value(),
                     are_windows = options.windows.has_value(), video = options.video] {
    if (video) return OpenVideo(*video);
    if (are_windows) return OpenNumbers(ReadWindowFile(source).windows.size());
    return is_list ? OpenImageList(source) : OpenRecordReader(backend, source);
  };
  // Caffe shuffles a list of images when testing, too.
  return {.source = data.source(),
          .open = open,
          .shuffle = data.shuffle() && (options.train || options.images),
          .cache = data.cache() && options.train,
          .precache = data.precache(),
          .announce_rewinds = options.train && options.rank == 0,
          .seed = options.seed,
          .stream = options.layer,
          .skip = ChooseSkip(options, data),
          .start = IsCamera(options) ? 0 : options.start_record,  // what it showed is gone
          .rank = static_cast<uint64_t>(options.rank),
          .ranks = static_cast<uint64_t>(options.ranks),
          .block = options.train ? 1 : data.batch_size()};
}

}  // namespace

class BatchSource::Impl {
 public:
  explicit Impl(const BatchSourceOptions& options)
      : data_(DataOptions(options)),
        batch_size_(static_cast<int>(data_.batch_size())),
        records_per_batch_(data_.batch_size() * static_cast<uint64_t>(options.ranks)),
        start_record_(options.start_record),
        with_label_(options.with_label),
        skips_broken_(data_.skip_broken()),
        sequence_(SequenceOptions(options)),
        windows_(MakeWindowSet(options)),
        transformer_(TransformOf(options), options.train, options.seed,
                     options.layer + "/transform"),
        color_mode_(ColorModeOf(data_, transformer_)),
        augmentations_(MakeAugmentations(TransformOf(options),
                                         options.annotated.value_or(AnnotatedDataParameter()))),
        has_boxes_(options.annotated.has_value()),
        first_loader_(MakeLoader(options)),
        buffers_(std::max(data_.prefetch(), 1u) + 1),
        free_(buffers_.size()),
        ready_(buffers_.size()),
        chunks_(2 * buffers_.size() + 16) {
    InspectFirstRecord();
    if (options.leave_transform) LeaveTransform(options);
    chunk_size_ = std::clamp(batch_size_ / (4 * threads_), 1, kLargestChunk);
    for (BatchBuffer& buffer : buffers_) {
      buffer.items.resize(batch_size_);
      buffer.labels.resize(with_label_ ? batch_size_ : 0);
      buffer.boxes.resize(has_boxes_ ? batch_size_ : 0);
      buffer.batch.label_shape = label_shape();
      free_.Push(&buffer);
    }
    try {
      workers_.push_back(StartThread("reading records", [this] { RunReader(); }));
      for (int i = 0; i < threads_; ++i) {
        RecordLoader* loader = loaders_.emplace_back(MakeLoader(options)).get();
        workers_.push_back(StartThread("parsing records", [this, loader] { RunParser(loader); }));
      }
    } catch (...) {
      Stop();
      throw;
    }
  }

  ~Impl() { Stop(); }

  const Shape& data_shape() const { return data_shape_; }
  Shape label_shape() const {
    if (!with_label_) return Shape{0};
    return has_boxes_ ? Shape{1, 1, box_rows_, kBoxColumns} : Shape{batch_size_};
  }

  Shape image_shape() const { return fixed_extents_ ? ShapeOf(first_image_) : data_shape_; }
  const DeviceTransform* device_transform() const {
    return device_transform_ ? &*device_transform_ : nullptr;
  }

  const Batch& Next() {
    if (failure_) std::rethrow_exception(failure_);
    if (current_ != nullptr) free_.Push(std::exchange(current_, nullptr));
    try {
      const auto start = std::chrono::steady_clock::now();
      current_ = ready_.Pop().value();
      WaitUntilFinished(current_);
      if (has_boxes_ && with_label_) WriteBoxRows(current_);
      wait_seconds_ +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
    ++batches_;
    if (!(data_shape_ == current_->batch.data_shape)) data_shape_ = current_->batch.data_shape;
    return current_->batch;
  }

  uint64_t records_consumed() const { return start_record_ + batches_ * records_per_batch_; }

  Stats stats() const {
    return {.batches = batches_,
            .broken_records = broken_records_.load(),
            .wait_seconds = wait_seconds_,
            .threads = threads_};
  }

 private:
  std::unique_ptr<RecordLoader> MakeLoader(const BatchSourceOptions& options) const {
    if (windows_ != nullptr) return std::make_unique<WindowLoader>(windows_);
    std::unique_ptr<RecordLoader> loader = MakeRecordLoader(options, color_mode_);
    if (augmentations_.empty()) return loader;
    return std::make_unique<AugmentingLoader>(std::move(loader), augmentations_,
                                              AugmentationStream(options));
  }

  // The boxes of all items one below the other; the rows that are left over are -1.
  void WriteBoxRows(BatchBuffer* buffer) {
    int64_t rows = 0;
    for (const std::vector<ObjectBox>& boxes : buffer->boxes) {
      rows += static_cast<int64_t>(boxes.size());
    }
    while (box_rows_ < rows) box_rows_ *= 2;
    buffer->labels.assign(static_cast<size_t>(box_rows_ * kBoxColumns), -1.0f);
    float* row = buffer->labels.data();
    for (size_t item = 0; item < buffer->boxes.size(); ++item) {
      for (const ObjectBox& box : buffer->boxes[item]) {
        const float values[kBoxColumns] = {static_cast<float>(item),
                                           static_cast<float>(box.label),
                                           static_cast<float>(box.instance),
                                           box.xmin,
                                           box.ymin,
                                           box.xmax,
                                           box.ymax,
                                           box.difficult ? 1.0f : 0.0f};
        row = std::copy(std::begin(values), std::end(values), row);
      }
    }
    buffer->batch.labels = buffer->labels.data();
    buffer->batch.label_shape = label_shape();
  }

  // Calls `fn`, which uses *item. An error gets the record's place in front; with skip_broken, a
  // broken record is replaced by the one behind it and `fn` called again.
  template <typename Fn>
  auto WithReplacement(RecordSequence::Item* item, Fn&& fn) {
    const uint64_t tries = std::min(sequence_.count(), kMostBrokenInARow);
    for (uint64_t attempt = 1;; ++attempt) {
      std::string reason;
      try {
        return fn();
      } catch (const IoError& error) {
        reason = StrCat(Describe(sequence_, *item), ": ", error.what());
      } catch (const InvalidArgument& error) {
        throw InvalidArgument(StrCat(Describe(sequence_, *item), ": ", error.what()));
      }
      if (!skips_broken_) throw IoError(reason);
      if (attempt == tries) {
        throw IoError(StrCat(reason, " (the last of ", tries, " broken records in a row)"));
      }
      ++broken_records_;
      LOG(WARNING) << reason << "; the next record takes its place";
      *item = sequence_.After(*item);
    }
  }

  // Shapes are asked for before the first batch exists, and the record tells how many threads are
  // worth their while.
  void InspectFirstRecord() {
    RecordSequence::Item item = sequence_.Peek();
    first_image_ = WithReplacement(&item, [&] {
      const ImageExtents image = first_loader_->ReadExtents(item.record.value, item.number);
      transformer_.OutputExtents(image);  // throws when crop or mean do not fit
      return image;
    });
    const ImageExtents extents = transformer_.OutputExtents(first_image_);
    broken_records_ = 0;  // the first batch meets the same ones
    fixed_extents_ = transformer_.has_fixed_size();
    first_extents_ = extents;
    data_shape_ = ShapeOf(extents);
    const bool is_encoded = first_loader_->IsEncoded(item.record.value);
    if (!is_encoded && color_mode_ != ColorMode::kAsStored) {
      LOG(WARNING) << sequence_.source() << ": force_color, force_gray and force_encoded_color "
                   << "have no effect on records that are not encoded";
    }
    threads_ = ChooseThreads(data_, is_encoded, item.record.value.size());
  }

  void LeaveTransform(const BatchSourceOptions& options) {
    RecordSequence::Item item = sequence_.Peek();
    const bool has_floats = WithReplacement(&item, [&] {
      return first_loader_->Load(item.record.value, item.number).image.floats != nullptr;
    });
    broken_records_ = 0;  // the first batch meets the same ones
    const std::string reason = WhyHostTransforms(options, !augmentations_.empty(), has_floats);
    if (!reason.empty()) {
      LOG(INFO) << "layer '" << options.layer
                << "': use_gpu_transform has no effect, images are transformed on the host: "
                << reason;
      return;
    }
    DeviceTransform& transform = device_transform_.emplace();
    transform.scale = transformer_.scale();
    MeanImage mean = transformer_.Mean(first_image_.channels);
    if (mean.values.empty()) return;
    const ImageExtents& extents = mean.extents;
    transform.mean_shape = static_cast<size_t>(extents.channels) == mean.values.size()
                               ? Shape{extents.channels}
                               : Shape{extents.channels, extents.height, extents.width};
    transform.mean = std::make_shared<const std::vector<float>>(std::move(mean.values));
  }

  // Of what the first record of a batch will be; the reader thread's.
  ImageExtents OutputExtents(const RecordSequence::Item& item) {
    return transformer_.OutputExtents(first_loader_->ReadExtents(item.record.value, item.number));
  }

  static int ChooseThreads(const DataParameter& data, bool is_encoded, size_t record_bytes) {
    if (data.threads() > 0) return static_cast<int>(std::min(data.threads(), 1024u));
    if (data.parser_threads() > 0) return static_cast<int>(std::min(data.parser_threads(), 1024u));
    if (!is_encoded && record_bytes < kSmallRecordBytes) return 1;
    return static_cast<int>(
        std::clamp(std::thread::hardware_concurrency(), 1u, kMostAutomaticThreads));
  }

  Shape ShapeOf(const ImageExtents& extents) const {
    return Shape{batch_size_, extents.channels, extents.height, extents.width};
  }

  // Deals records to batches, and batches to the parsers in chunks.
  void RunReader() {
    try {
      while (std::optional<BatchBuffer*> free = free_.Pop()) {
        BatchBuffer* buffer = *free;
        for (RecordSequence::Item& item : buffer->items) item = sequence_.Next();
        Prepare(buffer);
        if (!ready_.Push(buffer)) return;
        for (int begin = 0; begin < batch_size_; begin += chunk_size_) {
          const int end = std::min(begin + chunk_size_, batch_size_);
          if (!chunks_.Push({buffer, begin, end})) return;
        }
      }
    } catch (...) {
      ready_.Fail(std::current_exception());
    }
  }

  // Sizes the buffer for the batch's first image.
  void Prepare(BatchBuffer* buffer) {
    ImageExtents extents = first_extents_;
    if (!fixed_extents_) {
      try {
        RecordSequence::Item& first = buffer->items.front();
        if (skips_broken_) {  // what takes a broken image's place may be of another size
          WithReplacement(&first,
                          [&] { return first_loader_->Load(first.record.value, first.number); });
        }
        extents = OutputExtents(first);
      } catch (const Error&) {
        // The parser that meets this record reports it, or replaces it.
      }
    }
    if (!(extents == buffer->extents)) {
      buffer->extents = extents;
      buffer->batch.data_shape = ShapeOf(extents);
      if (device_transform_) {
        buffer->image_extents = fixed_extents_ ? first_image_ : extents;
        buffer->batch.image_shape = ShapeOf(buffer->image_extents);
        buffer->images.Reserve(static_cast<size_t>(buffer->image_extents.count()) * batch_size_);
        buffer->windows.resize(static_cast<size_t>(ops::ImageWindow::kNumbers) * batch_size_);
      } else {
        buffer->data.Reserve(static_cast<size_t>(extents.count()) * batch_size_);
      }
    }
    buffer->batch.size = batch_size_;
    buffer->batch.data = buffer->data.get();
    buffer->batch.images = buffer->images.get();
    buffer->batch.windows = buffer->windows.data();
    buffer->batch.labels = with_label_ ? buffer->labels.data() : nullptr;
    buffer->error = nullptr;
    buffer->chunks_left = (batch_size_ + chunk_size_ - 1) / chunk_size_;
  }

  void RunParser(RecordLoader* loader) {
    while (std::optional<Chunk> chunk = chunks_.Pop()) {
      BatchBuffer* buffer = chunk->buffer;
      for (int slot = chunk->begin; slot < chunk->end && !stopping_; ++slot) {
        try {
          WithReplacement(&buffer->items[slot], [&] { FillSlot(buffer, slot, loader); });
        } catch (...) {
          std::lock_guard lock(buffer->mutex);
          if (!buffer->error || slot < buffer->error_slot) {
            buffer->error = std::current_exception();
            buffer->error_slot = slot;
          }
        }
      }
      std::lock_guard lock(buffer->mutex);
      if (--buffer->chunks_left == 0) buffer->finished.notify_one();
    }
  }

  void FillSlot(BatchBuffer* buffer, int slot, RecordLoader* loader) {
    const RecordSequence::Item& item = buffer->items[slot];
    RecordLoader::Sample sample = loader->Load(item.record.value, item.number);
    const ImageExtents extents = transformer_.OutputExtents(sample.image.extents);
    if (!(extents == buffer->extents)) {
      throw InvalidArgument(StrCat("an image of ", sample.image.extents, ", but this batch is of ",
                                   buffer->extents,
                                   " images, as its first record; set crop_size, "
                                   "resize while converting, or set batch_size: 1"));
    }
    if (device_transform_) {
      transformer_.Pack(sample.image, item.number, buffer->image_extents,
                        buffer->images.get() + buffer->image_extents.count() * slot,
                        buffer->windows.data() + ops::ImageWindow::kNumbers * slot);
    } else {
      transformer_.Transform(sample.image, item.number,
                             buffer->data.get() + extents.count() * slot);
    }
    if (!with_label_) return;
    if (has_boxes_) {
      transformer_.TransformBoxes(sample.image.extents, item.number, &sample.boxes);
      buffer->boxes[slot] = std::move(sample.boxes);
    } else {
      buffer->labels[slot] = sample.label;
    }
  }

  static void WaitUntilFinished(BatchBuffer* buffer) {
    std::unique_lock lock(buffer->mutex);
    buffer->finished.wait(lock, [&] { return buffer->chunks_left == 0; });
    if (buffer->error) std::rethrow_exception(buffer->error);
  }

  void Stop() {
    stopping_ = true;
    free_.Close();
    ready_.Close();
    chunks_.Close();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }

  const DataParameter data_;
  const int batch_size_;
  const uint64_t records_per_batch_;  // of all ranks together
  const uint64_t start_record_;
  const bool with_label_;
  const bool skips_broken_;

  RecordSequence sequence_;
  const std::shared_ptr<const WindowSet> windows_;  // of window files
  const DatumTransformer transformer_;
  const ColorMode color_mode_;
  const AugmentingLoader::Steps augmentations_;
  const bool has_boxes_;
  const std::unique_ptr<RecordLoader> first_loader_;  // the reader thread's
  std::vector<std::unique_ptr<RecordLoader>> loaders_;
  bool fixed_extents_ = false;
  ImageExtents first_image_, first_extents_;         // before and after the transform
  std::optional<DeviceTransform> device_transform_;  // of batches of bytes
  int threads_ = 1;
  int chunk_size_ = 1;

  std::vector<BatchBuffer> buffers_;
  BoundedQueue<BatchBuffer*> free_;   // consumer -> reader
  BoundedQueue<BatchBuffer*> ready_;  // reader -> consumer, in order; may still be in work
  BoundedQueue<Chunk> chunks_;        // reader -> parsers
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> broken_records_ = 0;

  // The consumer's side.
  BatchBuffer* current_ = nullptr;
  Shape data_shape_;
  int64_t box_rows_ = 8;
  std::exception_ptr failure_;
  uint64_t batches_ = 0;
  double wait_seconds_ = 0;

  std::vector<std::thread> workers_;
};

BatchSource::BatchSource(const BatchSourceOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}
BatchSource::~BatchSource() = default;

Shape BatchSource::data_shape() const {
  return impl_->data_shape();
}
Shape BatchSource::label_shape() const {
  return impl_->label_shape();
}
Shape BatchSource::image_shape() const {
  return impl_->image_shape();
}
const DeviceTransform* BatchSource::device_transform() const {
  return impl_->device_transform();
}
const Batch& BatchSource::Next() {
  return impl_->Next();
}
uint64_t BatchSource::records_consumed() const {
  return impl_->records_consumed();
}
BatchSource::Stats BatchSource::stats() const {
  return impl_->stats();
}

std::string Describe(const RecordSequence& sequence, const RecordSequence::Item& item) {
  return StrCat(sequence.source(), ": record ", item.index, " ('", PrintableKey(item.record.key),
                "')");
}

}  // namespace caffe::data
