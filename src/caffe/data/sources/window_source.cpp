#include "caffe/data/sources/window_source.hpp"

#include "caffe/data/transformers/single_label.hpp"
#include "caffe/data/window_loader.hpp"

namespace caffe::data {
namespace {

DataParameter ReadingOf(const WindowDataParameter& windows) {
  DataParameter reading;
  reading.set_source(windows.source());
  reading.set_batch_size(windows.batch_size());
  return reading;
}

// If ranks alternate record by record, a batch of one rank is spread over the numbers of this many
// batches.
uint64_t RanksPerBatch(const BatchSourceOptions& options) {
  return options.train ? static_cast<uint64_t>(options.ranks) : 1;
}

// The loader crops, scales and mirrors windows and subtracts their mean, so that the transformer
// has nothing to do.
const TransformationParameter& TransformOfWindows(const TransformationParameter& transform) {
  RefuseSingleLabelAugmentation(transform, "this layer cuts windows itself; use mirror");
  return transform;
}

class WindowSource final : public RecordSource {
 public:
  WindowSource(const WindowDataParameter& windows, const BatchSourceOptions& options)
      : RecordSource({.message = "window_data_param", .reading = ReadingOf(windows)}, options),
        windows_(std::make_shared<WindowSet>(windows, TransformOfWindows(options.transform),
                                             RanksPerBatch(options), options.seed,
                                             options.layer + "/windows")) {}

  std::unique_ptr<RecordReader> Open() const override { return OpenNumbers(windows_->count()); }
  std::string WhyHostTransforms() const override {
    return "windows are cut out of their images and scaled there";
  }

 private:
  std::unique_ptr<RecordLoader> MakeRecordLoader() const override {
    return std::make_unique<WindowLoader>(windows_);
  }

  const std::shared_ptr<const WindowSet> windows_;
};

}  // namespace

std::unique_ptr<RecordSource> MakeWindowSource(const WindowDataParameter& windows,
                                               const BatchSourceOptions& options) {
  return std::make_unique<WindowSource>(windows, options);
}

}  // namespace caffe::data
