#include "caffe/data/pipeline_bench.hpp"

#include <chrono>
#include <cstring>
#include <vector>

#include "caffe/data/batch_source.hpp"
#include "caffe/data/record_sequence.hpp"
#include "caffe/data/sources/datum_source.hpp"
#include "caffe/device/host_memory.hpp"
#include "caffe/device/stream.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/images.hpp"

namespace caffe::data {
namespace {

// Calls `work`, which handles `per_call` images, for about `seconds`; returns images per second.
template <typename Work>
double Rate(double seconds, int per_call, Work&& work) {
  using Clock = std::chrono::steady_clock;
  work();  // warms up memory
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

// Prevents the compiler from removing an unused computation.
void Keep(uint64_t value) {
  [[maybe_unused]] static volatile uint64_t sink;
  sink = value;
}

// Reads one byte of each cache line.
uint64_t Touch(std::string_view bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 64) sum += static_cast<unsigned char>(bytes[i]);
  return sum;
}

// The single-threaded stages before batching.
class Stages {
 public:
  Stages(const RecordSource& source, double seconds)
      : source_(source),
        seconds_(seconds),
        sequence_({.source = source.reading().source(), .open = [&] { return source.Open(); }}),
        plain_loader_(source.color_mode()),
        loader_(source.MakeLoader()) {
    // Uses the first record, because the sequence is still at its beginning.
    std::vector<float> floats;
    const DatumView first = ParseDatum(sequence_.Peek().record.value, &floats);
    is_encoded_ = first.encoded;
    is_jpeg_ = first.encoded && IsJpeg(first.data);
    has_floats_ = !first.encoded && first.data.empty();
  }

  uint64_t records() const { return sequence_.count(); }
  bool is_encoded() const { return is_encoded_; }

  // Also returns the mean size of a record.
  double Read(double* bytes_per_record) {
    uint64_t bytes = 0, images = 0;
    const double rate = Rate(seconds_, 1, [&] {
      const RecordSequence::Item item = sequence_.Next();
      Keep(Touch(item.record.value));
      bytes += item.record.value.size();
      ++images;
    });
    *bytes_per_record = static_cast<double>(bytes) / static_cast<double>(images);
    return rate;
  }

  double Parse() {
    return RateOfImages(plain_loader_, [](const ImageView& image, uint64_t) {
      const int64_t count = image.extents.count();
      Keep(image.bytes != nullptr
               ? Touch({reinterpret_cast<const char*>(image.bytes), static_cast<size_t>(count)})
               : static_cast<uint64_t>(image.floats[count - 1]));
    });
  }

  // Includes augmentations. Writes to as many places as a batch has, so that the floats leave the
  // caches as in training.
  double Transform(int batch_size, Layout layout) {
    const DatumTransformer& transformer = source_.transformer();
    std::vector<float> batch;
    int slot = 0;
    return RateOfImages(*loader_, [&](const ImageView& image, uint64_t number) {
      const size_t count = transformer.OutputExtents(image.extents).count();
      if (batch.size() < count * batch_size) batch.resize(count * batch_size);
      transformer.Transform(image, number, batch.data() + count * slot, layout);
      slot = (slot + 1) % batch_size;
    });
  }

  // Returns 0 if the records have floats.
  double Pack(int batch_size, double* bytes_per_image) {
    if (has_floats_) return 0;
    const DatumTransformer& transformer = source_.transformer();
    std::vector<uint8_t> batch;
    int64_t slot = 0, bytes = 0, images = 0;
    const double rate = RateOfImages(*loader_, [&](const ImageView& image, uint64_t number) {
      const auto count = static_cast<size_t>(image.extents.count());
      if (batch.size() < count * batch_size) batch.resize(count * batch_size);
      float window[ops::ImageWindow::kNumbers];
      transformer.Pack(image, number, image.extents, batch.data() + count * slot, window);
      slot = (slot + 1) % batch_size;
      bytes += image.extents.count();
      ++images;
    });
    *bytes_per_image = static_cast<double>(bytes) / static_cast<double>(images);
    return rate;
  }

  // Measures the device's decoder alone, with files as in training.
  void DecodeJpegOn(const std::shared_ptr<Device>& device, PipelineSpeed* speed) {
    constexpr int kFiles = 64;
    if (!is_jpeg_) return;
    try {
      const auto choice =
          std::make_shared<JpegChoice>(device, /*is_timed=*/false, /*threads=*/1, "data-bench");
      speed->device_jpeg_decoder = choice->MakeDecoder()->name();
      DatumLoader loader(source_.color_mode(), choice);
      int64_t decoded = 0, calls = 0;
      const double rate = Rate(seconds_, kFiles, [&] {
        std::vector<RecordSequence::Item> items;
        std::vector<std::string_view> values;
        for (int i = 0; i < kFiles; ++i) items.push_back(sequence_.Next());
        for (const RecordSequence::Item& item : items) values.push_back(item.record.value);
        loader.LoadAhead(values);
        decoded += loader.num_ready();
        ++calls;
      });
      if (decoded == calls * kFiles) {
        speed->device_jpeg_decode = rate;
      } else {
        speed->device_jpeg_decoder +=
            StrCat(" takes ", decoded, " of ", calls * kFiles, " files, the processor the others");
      }
    } catch (const Error& error) {
      speed->device_jpeg_decoder = error.what();
    }
  }

  // Measures libjpeg-turbo alone; 0 unless the first record is a JPEG file.
  double DecodeJpeg() {
    if (!is_jpeg_) return 0;
    std::vector<float> floats;
    ImageDecoder decoder(source_.color_mode());
    return RateOfRecords([&](const RecordSequence::Item& item) {
      Keep(decoder.Decode(ParseDatum(item.record.value, &floats).data).bytes[0]);
    });
  }

 private:
  template <typename Work>
  double RateOfRecords(Work&& work) {
    return Rate(seconds_, 1, [&] {
      const RecordSequence::Item item = sequence_.Next();
      WithContext(Describe(sequence_, item), [&] { work(item); });
    });
  }

  template <typename Work>
  double RateOfImages(RecordLoader& loader, Work&& work) {
    return RateOfRecords([&](const RecordSequence::Item& item) {
      work(loader.Load(item.record.value, item.number).image, item.number);
    });
  }

  const RecordSource& source_;
  const double seconds_;
  RecordSequence sequence_;
  DatumLoader plain_loader_;
  const std::unique_ptr<RecordLoader> loader_;  // augments
  bool is_encoded_ = false;                     // of the first record
  bool is_jpeg_ = false;
  bool has_floats_ = false;
};

double MeasureBatches(const DataParameter& data, const BatchSourceOptions& options, Layout layout,
                      double seconds, PipelineSpeed* speed) {
  BatchSource source(MakeDatumSource(data, options), options);
  const Shape shape = source.data_shape();
  speed->batch_size = static_cast<int>(shape[0]);
  speed->numbers_per_image = shape.count(1);
  speed->image = StrCat(shape[1], "x", shape[2], "x", shape[3]);
  speed->threads = source.stats().threads;
  // Batches that were prepared before the measurement must not count: bring the queue to
  // equilibrium.
  for (uint32_t i = 0; i < data.prefetch() + 2; ++i) source.Next({layout});
  return Rate(seconds, speed->batch_size, [&] { source.Next({layout}); });
}

}  // namespace

PipelineSpeed MeasurePipeline(const DataParameter& data, const BatchSourceOptions& given,
                              double seconds) {
  BatchSourceOptions options = given;
  options.device = nullptr;
  PipelineSpeed speed;
  speed.pipeline = MeasureBatches(data, options, Layout::kPlain, seconds, &speed);
  speed.pipeline_channels_last =
      MeasureBatches(data, options, Layout::kChannelsLast, seconds, &speed);
  const std::unique_ptr<RecordSource> source = MakeDatumSource(data, options);
  Stages stages(*source, seconds);
  speed.records = stages.records();
  speed.read = stages.Read(&speed.bytes_per_record);
  speed.parse = stages.Parse();
  speed.transform = stages.Transform(speed.batch_size, Layout::kPlain);
  speed.transform_channels_last = stages.Transform(speed.batch_size, Layout::kChannelsLast);
  speed.pack = stages.Pack(speed.batch_size, &speed.packed_bytes_per_image);
  speed.is_encoded = stages.is_encoded();
  speed.jpeg_decode = stages.DecodeJpeg();
  if (given.device != nullptr) stages.DecodeJpegOn(given.device, &speed);
  return speed;
}

Feed FeedOf(const PipelineSpeed& speed, double rate, double bytes_per_image,
            const Machine& machine) {
  Feed feed{rate * machine.cores, speed.is_encoded ? "decoding" : "transforming"};
  const auto limit = [&](double images_per_second, const char* what) {
    if (images_per_second < feed.images_per_second) feed = {images_per_second, what};
  };
  limit(speed.read, "reading");
  if (machine.link_bytes_per_second > 0) {
    limit(machine.link_bytes_per_second / bytes_per_image, "the link");
  }
  return feed;
}

double MeasureLink(DeviceKind kind, int id, double seconds) {
  constexpr size_t kBytes = size_t{64} << 20;
  const std::shared_ptr<Device> device = MakeDevice(kind, id);
  const std::shared_ptr<void> to = device->Allocate(kBytes);
  const std::shared_ptr<void> from = AllocateHostMemory(*device, kBytes);
  std::memset(from.get(), 1, kBytes);
  Stream& stream = device->compute_stream();
  return Rate(seconds, 1,
              [&] {
                stream.CopyFromHost(to.get(), from.get(), kBytes);
                stream.Synchronize();
              }) *
         static_cast<double>(kBytes);
}

}  // namespace caffe::data
