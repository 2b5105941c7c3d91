#include "caffe/data/sources/annotated_source.hpp"

#include "caffe/data/annotated_loader.hpp"
#include "caffe/data/readers/mixed_reader.hpp"
#include "caffe/data/transformers/single_label.hpp"

namespace caffe::data {
namespace {

const TransformationParameter& TransformOfBoxes(const TransformationParameter& transform) {
  RefuseSingleLabelAugmentation(transform,
                                "boxes would not follow; use annotated_data_param { batch_sampler "
                                "}, expand_param and distort_param");
  return transform;
}

class AnnotatedSource final : public RecordSource {
 public:
  AnnotatedSource(const DataParameter& data, const AnnotatedDataParameter& annotated,
                  const BatchSourceOptions& options)
      : RecordSource({.reading = ReadingOfDatabase(data, options.train),
                      .transform = TransformOfBoxes(options.transform),
                      .annotated = annotated},
                     options),
        annotated_(annotated) {}

  std::unique_ptr<RecordReader> Open() const override {
    return OpenRecordReaders(reading());
  }
  bool has_boxes() const override { return true; }

 private:
  std::unique_ptr<RecordLoader> MakeRecordLoader() const override {
    return std::make_unique<AnnotatedLoader>(annotated_, color_mode());
  }

  const AnnotatedDataParameter annotated_;
};

}  // namespace

std::unique_ptr<RecordSource> MakeAnnotatedSource(const DataParameter& data,
                                                  const AnnotatedDataParameter& annotated,
                                                  const BatchSourceOptions& options) {
  return std::make_unique<AnnotatedSource>(data, annotated, options);
}

}  // namespace caffe::data
