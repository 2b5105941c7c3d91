#include "caffe/data/sources/datum_source.hpp"

#include "caffe/core/processors.hpp"
#include "caffe/data/parser_threads.hpp"
#include "caffe/data/readers/mixed_reader.hpp"

namespace caffe::data {
namespace {

class DatumSource final : public RecordSource {
 public:
  DatumSource(const DataParameter& data, const BatchSourceOptions& options)
      : RecordSource(
            {.reading = ReadingOfDatabase(data, options.train), .transform = options.transform},
            options),
        jpeg_(MakeJpegChoice(
            options.device,
            ParserThreads(reading(), {.is_encoded = true}, options.ranks, UsableProcessors()),
            options.layer)) {}

  std::unique_ptr<RecordReader> Open() const override {
    return OpenRecordReaders(reading());
  }
  bool may_load_ahead() const override { return jpeg_ != nullptr; }

 private:
  std::unique_ptr<RecordLoader> MakeRecordLoader() const override {
    return std::make_unique<DatumLoader>(color_mode(), jpeg_);
  }

  const std::shared_ptr<JpegChoice> jpeg_;
};

}  // namespace

std::unique_ptr<RecordSource> MakeDatumSource(const DataParameter& data,
                                              const BatchSourceOptions& options) {
  return std::make_unique<DatumSource>(data, options);
}

}  // namespace caffe::data
