#include "caffe/data/batch_source.hpp"

#include <glog/logging.h>

#include <chrono>
#include <exception>
#include <optional>

#include "caffe/core/philox.hpp"
#include "caffe/core/processors.hpp"
#include "caffe/data/batch_pipeline.hpp"
#include "caffe/data/box_labels.hpp"
#include "caffe/data/parser_threads.hpp"
#include "caffe/data/readers/mixed_reader.hpp"
#include "caffe/data/record_content.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

uint64_t ChooseSkip(const DataParameter& reading, const BatchSourceOptions& options) {
  const uint32_t most = reading.rand_skip();
  if (most == 0) return 0;
  const RandomStream random(options.seed, StreamOf(options.layer + "/rand_skip"));
  const uint32_t skip = ToRange(random.Bits(0), most);
  LOG(INFO) << "Skipping first " << skip << " data points.";
  return skip;
}

RecordSequenceOptions SequenceOptions(const RecordSource& records,
                                      const BatchSourceOptions& options) {
  CAFFE_ASSERT(0 <= options.rank && options.rank < options.ranks, options.rank);
  const DataParameter& reading = records.reading();
  return {.source = SourcesOf(reading),
          .open = [&records] { return records.Open(); },
          .shuffle = reading.shuffle(),
          .cache = reading.cache(),
          .precache = reading.precache(),
          .announce_rewinds = options.train && options.rank == 0,
          .seed = options.seed,
          .stream = options.layer,
          .skip = options.whole_epochs ? 0 : ChooseSkip(reading, options),
          .start = records.can_resume() && !options.whole_epochs ? options.start_record : 0,
          .rank = static_cast<uint64_t>(options.rank),
          .ranks = static_cast<uint64_t>(options.ranks),
          .block = options.train && !options.whole_epochs ? 1 : reading.batch_size(),
          .whole_epochs = options.whole_epochs && records.can_resume()};
}

// The transform that batches of bytes leave to a device; empty for batches of floats.
std::optional<DeviceTransform> ChooseDeviceTransform(const RecordSource& records,
                                                     const BatchSourceOptions& options,
                                                     RecordSequence* sequence,
                                                     BrokenRecords* broken, int channels) {
  if (!options.leave_transform) return std::nullopt;
  std::string reason = records.WhyHostTransforms();
  if (reason.empty() && FirstImageHasFloats(records, sequence, broken)) {
    reason = "the records are floats, not bytes";
  }
  if (reason.empty()) return DeviceTransformOf(records.transformer(), channels);
  LOG(INFO) << "layer '" << options.layer
            << "': use_gpu_transform has no effect, images are transformed on the host: " << reason;
  return std::nullopt;
}

}  // namespace

class BatchSource::Impl {
 public:
  Impl(std::unique_ptr<RecordSource> records, const BatchSourceOptions& options)
      : records_(std::move(records)),
        start_record_(options.start_record),
        records_per_batch_(uint64_t{records_->reading().batch_size()} *
                           static_cast<uint64_t>(options.ranks)),
        sequence_(SequenceOptions(*records_, options)),
        broken_(&sequence_, records_->reading().skip_broken()),
        first_(InspectFirstRecord(*records_, &sequence_, &broken_)),
        filler_(
            *records_, first_, options.with_label,
            ChooseDeviceTransform(*records_, options, &sequence_, &broken_, first_.image.channels)),
        threads_(ParserThreads(records_->reading(), first_, options.ranks, UsableProcessors())),
        data_shape_(filler_.ShapeOf(first_.output, filler_.batch_size())) {
    if (!options.is_only_planned) {
      pipeline_.emplace(BatchPipeline::Parts{*records_, first_, filler_, sequence_, broken_},
                        threads_);
    }
  }

  const std::string& name() const { return sequence_.source(); }
  const BatchFiller& filler() const { return filler_; }
  const Shape& data_shape() const { return data_shape_; }
  Shape label_shape() const {
    if (!filler_.with_label()) return Shape{0};
    if (records_->has_boxes()) return box_labels_.shape();
    return current_ != nullptr ? current_->batch.label_shape
                               : filler_.LabelShapeOf(first_.output, filler_.batch_size());
  }
  Shape image_shape() const {
    return records_->transformer().has_fixed_size() ? filler_.ShapeOf(first_.image, data_shape_[0])
                                                    : data_shape_;
  }

  ~Impl() { WaitUntilFetched(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const Batch& Next(const BatchForm& form) {
    if (failure_) std::rethrow_exception(failure_);
    if (fetched_ != nullptr) std::exchange(fetched_, nullptr)->Synchronize();
    if (std::exchange(repeats_, false)) {
      current_->ChangeForm(form);
      return current_->batch;
    }
    try {
      const auto start = std::chrono::steady_clock::now();
      current_ = pipeline_->Next(form);
      if (records_->has_boxes() && filler_.with_label()) WriteBoxes(current_);
      stats_.wait_seconds +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      ++stats_.batches;
      if (!(data_shape_ == current_->batch.data_shape)) data_shape_ = current_->batch.data_shape;
      return current_->batch;
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
  }

  void LendUntil(std::shared_ptr<Event> fetched) { fetched_ = std::move(fetched); }

  void Repeat() { repeats_ = current_ != nullptr; }

  std::span<const RecordSequence::Item> RecordsOfBatch() const {
    if (current_ == nullptr) return {};
    return current_->items;
  }

  uint64_t batch_size() const { return records_->reading().batch_size(); }
  uint64_t records_consumed() const { return start_record_ + stats_.batches * records_per_batch_; }

  Memory MemoryAfter(uint64_t batches) const {
    const size_t buffers = BatchPipeline::NumBuffers(records_->reading());
    const uint64_t records = (batches + buffers) * records_per_batch_;
    return {.batches = static_cast<int64_t>(buffers) * filler_.BytesOfBuffer(first_.output),
            .copied = static_cast<int64_t>(sequence_.CopiedBytesAfter(records)),
            .mapped = static_cast<int64_t>(sequence_.MappedBytesAfter(records))};
  }

  std::string content() const { return ContentOf(*records_); }

  Stats stats() const {
    Stats stats = stats_;
    stats.records_per_epoch = records_->can_resume() ? sequence_.count() : 0;
    stats.broken_records = broken_.count();
    stats.threads = threads_;
    return stats;
  }

 private:
  // A device that has failed does not read any more.
  void WaitUntilFetched() noexcept {
    try {
      if (fetched_ != nullptr) fetched_->Synchronize();
    } catch (const std::exception& error) {
      LOG(ERROR) << sequence_.source() << ": " << error.what();
    }
  }

  void WriteBoxes(BatchBuffer* buffer) {
    box_labels_.Write(buffer->boxes, &buffer->labels);
    buffer->batch.labels = buffer->labels.data();
    buffer->batch.label_shape = box_labels_.shape();
  }

  const std::unique_ptr<const RecordSource> records_;
  const uint64_t start_record_;
  const uint64_t records_per_batch_;  // over all ranks
  RecordSequence sequence_;
  BrokenRecords broken_;
  const FirstRecord first_;
  const BatchFiller filler_;
  const int threads_;
  BoxLabels box_labels_;
  Shape data_shape_;
  BatchBuffer* current_ = nullptr;
  std::shared_ptr<Event> fetched_;  // of the current batch, if it is lent
  bool repeats_ = false;
  std::exception_ptr failure_;
  Stats stats_;
  std::optional<BatchPipeline> pipeline_;  // last member, because its threads use the others
};

BatchSource::BatchSource(std::unique_ptr<RecordSource> records, const BatchSourceOptions& options)
    : impl_(MakeThreaded<Impl>(std::move(records), options)) {}
BatchSource::~BatchSource() = default;

uint64_t BatchSource::batch_size() const {
  return impl_->batch_size();
}
const std::string& BatchSource::name() const {
  return impl_->name();
}
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
  return impl_->filler().device_transform();
}
const Batch& BatchSource::Next(const BatchForm& form) {
  Require(IsOfThisProcess(impl_), name(),
          ": is read by threads of the process that made the net, which fork() does not copy; make "
          "the net in this process, or start processes by multiprocessing.get_context('spawn')");
  return impl_->Next(form);
}
void BatchSource::LendUntil(std::shared_ptr<Event> fetched) {
  impl_->LendUntil(std::move(fetched));
}
void BatchSource::Repeat() {
  impl_->Repeat();
}
std::span<const RecordSequence::Item> BatchSource::RecordsOfBatch() const {
  return impl_->RecordsOfBatch();
}
uint64_t BatchSource::records_consumed() const {
  return impl_->records_consumed();
}
BatchSource::Memory BatchSource::MemoryAfter(uint64_t batches) const {
  return impl_->MemoryAfter(batches);
}
BatchSource::Stats BatchSource::stats() const {
  return impl_->stats();
}
std::string BatchSource::content() const {
  return impl_->content();
}

}  // namespace caffe::data
