#include "caffe/data/batch_pipeline.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "caffe/core/activity.hpp"
#include "caffe/core/start_thread.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// Maximum number of records that a thread takes at a time: few enough to share a batch evenly.
constexpr int kLargestChunk = 64;

}  // namespace

BatchPipeline::BatchPipeline(const Parts& parts, int parsers)
    : parts_(parts),
      batch_size_(parts.filler.batch_size()),
      chunk_size_(std::clamp(batch_size_ / (parts.source.may_load_ahead() ? 4 : 4 * parsers), 1,
                             kLargestChunk)),
      buffers_(NumBuffers(parts.source.reading())),
      free_(buffers_.size()),
      ready_(buffers_.size()),
      chunks_(2 * buffers_.size() + 16) {
  for (BatchBuffer& buffer : buffers_) {
    parts_.filler.Allocate(&buffer);
    free_.Push(&buffer);
  }
  try {
    Start(parsers);
  } catch (...) {
    Stop();
    throw;
  }
}

size_t BatchPipeline::NumBuffers(const DataParameter& reading) {
  return size_t{std::max(reading.prefetch(), 1u)} + 1;
}

BatchPipeline::~BatchPipeline() {
  Stop();
}

void BatchPipeline::Start(int parsers) {
  // Reserves first: an exception while storing a running thread would end the program.
  threads_.reserve(static_cast<size_t>(parsers) + 1);
  const auto make_loader = [&] { return loaders_.emplace_back(parts_.source.MakeLoader()).get(); };
  RecordLoader* own = make_loader();
  threads_.push_back(StartThread("reading records", [this, own] { RunReader(own); }));
  for (int i = 0; i < parsers; ++i) {
    RecordLoader* loader = make_loader();
    threads_.push_back(StartThread("parsing records", [this, loader] { RunParser(loader); }));
  }
}

void BatchPipeline::Stop() {
  stopping_ = true;
  free_.Close();
  ready_.Close();
  chunks_.Close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

BatchForm BatchPipeline::form() {
  const std::lock_guard lock(form_mutex_);
  return form_;
}

void BatchPipeline::SetForm(const BatchForm& form) {
  const std::lock_guard lock(form_mutex_);
  form_ = form;
}

// For the other buffers, which have been filled in ordinary memory by now.
void BatchPipeline::MakeSpares(const HostMemory& make) {
  has_spares_ = true;
  const Batch& batch = current_->batch;
  const int64_t bytes = batch.images != nullptr
                            ? batch.image_shape.count()
                            : static_cast<int64_t>(SizeOf(batch.dtype)) * batch.data_shape.count();
  spares_.Add(buffers_.size() - 1, static_cast<size_t>(bytes), make);
}

BatchBuffer* BatchPipeline::Next(const BatchForm& wanted) {
  const bool makes_spares = wanted.memory != nullptr && !has_spares_;
  BatchForm form = wanted;
  if (wanted.memory != nullptr)
    form.memory = [this, make = wanted.memory](size_t bytes) { return spares_.Take(bytes, make); };
  if (!makes_spares) SetForm(form);
  if (current_ != nullptr) free_.Push(std::exchange(current_, nullptr));
  {
    const Activity waiting("compute", "waits for the reader of", parts_.sequence.source(),
                           [this](const std::exception_ptr& error) { ready_.Fail(error); });
    current_ = ready_.Pop().value();
  }
  const Activity waiting(
      "compute", "waits for the parsers of", parts_.sequence.source(),
      [this](const std::exception_ptr& error) { current_->completion.Abandon(error); });
  current_->completion.Wait();
  current_->ChangeForm(form);
  if (makes_spares) {
    MakeSpares(wanted.memory);
    SetForm(form);
  }
  return current_;
}

void BatchPipeline::RunReader(RecordLoader* loader) {
  try {
    while (std::optional<BatchBuffer*> free = free_.Pop()) {
      BatchBuffer* buffer = *free;
      const Activity reading("reader", "reads", parts_.sequence.source());
      Deal(buffer);
      parts_.filler.Prepare(buffer, OutputOf(&buffer->items.front(), loader), form());
      if (!DealOut(buffer)) return;
    }
  } catch (...) {
    ready_.Fail(std::current_exception());
  }
}

// Assigns the records of the next batch, which may be fewer at the end of an epoch.
void BatchPipeline::Deal(BatchBuffer* buffer) {
  const bool is_ended = parts_.sequence.whole_epochs();
  const auto full = static_cast<size_t>(batch_size_);
  const size_t size = is_ended ? std::min<size_t>(full, parts_.sequence.LeftOfBlock()) : full;
  buffer->items.resize(size);
  if (parts_.source.has_boxes()) buffer->boxes.resize(size);
  for (RecordSequence::Item& item : buffer->items) item = parts_.sequence.Next();
}

// Returns false if the queues are closed.
bool BatchPipeline::DealOut(BatchBuffer* buffer) {
  const auto size = static_cast<int>(buffer->items.size());
  buffer->completion.Start((size + chunk_size_ - 1) / chunk_size_);
  if (!ready_.Push(buffer)) return false;
  for (int begin = 0; begin < size; begin += chunk_size_) {
    if (!chunks_.Push({buffer, begin, std::min(begin + chunk_size_, size)})) return false;
  }
  return true;
}

// Extents of a batch's first image after the transform; the others must have the same.
ImageExtents BatchPipeline::OutputOf(RecordSequence::Item* first, RecordLoader* loader) {
  const DatumTransformer& transformer = parts_.source.transformer();
  if (transformer.has_fixed_size()) return parts_.first.output;
  try {
    if (parts_.broken.skips()) {  // the replacement may have another size
      parts_.broken.Replace(first, [&] { loader->Load(first->record.value, first->number); });
    }
    return transformer.OutputExtents(loader->ReadExtents(first->record.value, first->number));
  } catch (const Error&) {
    return parts_.first.output;  // the parser of this record reports or replaces it
  }
}

void BatchPipeline::RunParser(RecordLoader* loader) {
  std::vector<float> floats;
  while (const std::optional<Chunk> chunk = chunks_.Pop()) {
    FillChunk(*chunk, loader, &floats);
    chunk->buffer->completion.FinishPart();
  }
}

void BatchPipeline::LoadAhead(const Chunk& chunk, RecordLoader* loader) {
  std::vector<std::string_view> values;
  for (int slot = chunk.begin; slot < chunk.end; ++slot)
    values.push_back(chunk.buffer->items[slot].record.value);
  try {
    loader->LoadAhead(values);
  } catch (...) {
    chunk.buffer->completion.Fail(chunk.begin, std::current_exception());
  }
}

void BatchPipeline::FillChunk(const Chunk& chunk, RecordLoader* loader,
                              std::vector<float>* floats) {
  const Activity parsing("parser", "parses records of", parts_.sequence.source());
  BatchBuffer* buffer = chunk.buffer;
  if (parts_.source.may_load_ahead()) LoadAhead(chunk, loader);
  for (int slot = chunk.begin; slot < chunk.end && !stopping_; ++slot) {
    try {
      parts_.broken.Replace(&buffer->items[slot],
                            [&] { parts_.filler.Fill(buffer, slot, loader, floats); });
    } catch (...) {
      buffer->completion.Fail(slot, std::current_exception());
    }
  }
}

}  // namespace caffe::data
