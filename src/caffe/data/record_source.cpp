#include "caffe/data/record_source.hpp"

#include "caffe/data/augmenting_loader.hpp"
#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/data/transformers/erasing.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

const DataParameter& Checked(const DataParameter& reading, const char* message) {
  Require(reading.batch_size() > 0, message, " has no batch_size; give a positive one");
  Require(reading.batch_size() <= 1u << 24, message, ".batch_size is ", reading.batch_size(),
          "; lower it");
  Require(reading.prefetch() <= 1u << 16, "data_param.prefetch is ", reading.prefetch(),
          " batches; lower it");
  return reading;
}

RandomStream AugmentationRandom(const TransformationParameter& transform,
                                const BatchSourceOptions& options, const char* stream) {
  const int64_t own_seed = transform.random_seed();
  return {own_seed >= 0 ? static_cast<uint64_t>(own_seed) : options.seed,
          StreamOf(options.layer + stream)};
}

std::unique_ptr<const Erasing> MakeErasing(const TransformationParameter& transform,
                                           const BatchSourceOptions& options) {
  if (!transform.has_erasing()) return nullptr;
  auto erasing = std::make_unique<const Erasing>(
      transform, AugmentationRandom(transform, options, "/erasing"));
  return options.train ? std::move(erasing) : nullptr;
}

}  // namespace

RecordSource::RecordSource(const Definition& definition, const BatchSourceOptions& options)
    : reading_(Checked(definition.reading, definition.message)),
      transformer_(definition.transform, options.train, options.seed, options.layer + "/transform"),
      augmentations_(MakeAugmentations(definition.transform, definition.annotated, options.train)),
      augmentation_random_(AugmentationRandom(definition.transform, options, "/augment")),
      erasing_(MakeErasing(definition.transform, options)) {}

RecordSource::~RecordSource() = default;

// data_param.force_encoded_color is the old name of transform_param.force_color.
ColorMode RecordSource::color_mode() const {
  return reading_.force_encoded_color() ? ColorMode::kColor : transformer_.color_mode();
}

std::unique_ptr<RecordLoader> RecordSource::MakeLoader() const {
  std::unique_ptr<RecordLoader> loader = MakeRecordLoader();
  if (augmentations_.empty()) return loader;
  return std::make_unique<AugmentingLoader>(std::move(loader), augmentations_,
                                            augmentation_random_);
}

std::string RecordSource::WhyHostTransforms() const {
  if (augmentations_.empty() && erasing_ == nullptr) return "";
  return "resizing, distortion, expansion, sampling, noise, turning and erasing happen there";
}

DataParameter ReadingOfDatabase(const DataParameter& data, bool train) {
  Require(!data.source().empty(), "data_param has no source; give the folder of the database");
  DataParameter reading = data;
  reading.set_shuffle(data.shuffle() && train);
  reading.set_cache(data.cache() && train);
  return reading;
}

}  // namespace caffe::data
