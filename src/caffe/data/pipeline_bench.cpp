#include "caffe/data/pipeline_bench.hpp"

#include <chrono>
#include <sstream>
#include <vector>

#include "caffe/data/record_loader.hpp"
#include "caffe/data/record_sequence.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// Calls `work`, which handles `per_call` images, for about `seconds`; images per second.
template <typename Work>
double Rate(double seconds, int per_call, Work&& work) {
  using Clock = std::chrono::steady_clock;
  work();  // touches memory for the first time
  const Clock::time_point start = Clock::now();
  double elapsed = 0;
  int64_t calls = 0;
  do {
    work();
    ++calls;
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  } while (elapsed < seconds);
  return static_cast<double>(calls) * per_call / elapsed;
}

// Keeps the compiler from dropping a computation that nobody reads.
void Keep(uint64_t value) {
  [[maybe_unused]] static volatile uint64_t sink;
  sink = value;
}

// One byte of each cache line reads them all.
uint64_t Touch(std::string_view bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 64) sum += static_cast<unsigned char>(bytes[i]);
  return sum;
}

}  // namespace

PipelineSpeed MeasurePipeline(const BatchSourceOptions& options, double seconds) {
  PipelineSpeed speed;
  {
    BatchSource source(options);
    const Shape shape = source.data_shape();
    speed.batch_size = static_cast<int>(shape[0]);
    speed.image = StrCat(shape[1], "x", shape[2], "x", shape[3]);
    speed.threads = source.stats().threads;
    // A batch that is ready before its turn must not count: the queue has to be in balance.
    for (uint32_t i = 0; i < options.data.prefetch() + 2; ++i) source.Next();
    speed.pipeline = Rate(seconds, speed.batch_size, [&] { source.Next(); });
  }

  const auto open = [&] { return OpenRecordReader(options.data.backend(), options.data.source()); };
  RecordSequence sequence({.source = options.data.source(), .open = open});
  const DatumTransformer transformer(options.transform, options.train, options.seed,
                                     options.layer + "/transform");
  DatumLoader loader(ColorModeOf(options.data, transformer));
  const auto in_context = [&](const RecordSequence::Item& item, auto&& work) {
    WithContext(Describe(sequence, item), work);
  };

  uint64_t bytes = 0, images = 0;
  speed.records = sequence.count();
  speed.read = Rate(seconds, 1, [&] {
    const RecordSequence::Item item = sequence.Next();
    Keep(Touch(item.record.value));
    bytes += item.record.value.size();
    ++images;
  });
  speed.bytes_per_record = static_cast<double>(bytes) / static_cast<double>(images);

  speed.parse = Rate(seconds, 1, [&] {
    const RecordSequence::Item item = sequence.Next();
    in_context(item, [&] {
      const ImageView image = loader.Load(item.record.value, item.number).image;
      const int64_t count = image.extents.count();
      Keep(image.bytes != nullptr
               ? Touch({reinterpret_cast<const char*>(image.bytes), static_cast<size_t>(count)})
               : static_cast<uint64_t>(image.floats[count - 1]));
    });
  });

  // A batch's worth of places, so that the floats go as far from the caches as in training.
  std::vector<float> batch;
  int slot = 0;
  speed.transform = Rate(seconds, 1, [&] {
    const RecordSequence::Item item = sequence.Next();
    in_context(item, [&] {
      const ImageView image = loader.Load(item.record.value, item.number).image;
      const size_t count = transformer.OutputExtents(image.extents).count();
      if (batch.size() < count * speed.batch_size) batch.resize(count * speed.batch_size);
      transformer.Transform(image, item.number, batch.data() + count * slot);
      slot = (slot + 1) % speed.batch_size;
    });
  });

  std::vector<float> float_storage;
  const DatumView first = ParseDatum(sequence.Peek().record.value, &float_storage);
  speed.is_encoded = first.encoded;
  if (first.encoded && IsJpeg(first.data)) {
    ImageDecoder decoder(ColorModeOf(options.data, transformer));
    speed.jpeg_decode = Rate(seconds, 1, [&] {
      const RecordSequence::Item item = sequence.Next();
      in_context(item, [&] {
        Keep(decoder.Decode(ParseDatum(item.record.value, &float_storage).data).bytes[0]);
      });
    });
  }
  return speed;
}

std::string PipelineSpeed::ToJson() const {
  std::ostringstream json;
  json << "{\"read\": " << read << ", \"parse\": " << parse << ", \"transform\": " << transform
       << ", \"pipeline\": " << pipeline << ", \"jpeg_decode\": " << jpeg_decode
       << ", \"threads\": " << threads << ", \"batch_size\": " << batch_size
       << ", \"bytes_per_record\": " << bytes_per_record << ", \"records\": " << records
       << ", \"is_encoded\": " << (is_encoded ? "true" : "false") << ", \"image\": \"" << image
       << "\"}";
  return json.str();
}

}  // namespace caffe::data
