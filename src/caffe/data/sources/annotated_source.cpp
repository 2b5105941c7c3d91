#include "caffe/data/sources/annotated_source.hpp"

#include "caffe/data/annotated_loader.hpp"

namespace caffe::data {
namespace {

class AnnotatedSource final : public RecordSource {
 public:
  AnnotatedSource(const DataParameter& data, const AnnotatedDataParameter& annotated,
                  const BatchSourceOptions& options)
      : RecordSource({.reading = ReadingOfDatabase(data, options.train),
                      .transform = options.transform,
                      .annotated = annotated},
                     options),
        annotated_(annotated) {}

  std::unique_ptr<RecordReader> Open() const override {
    return OpenRecordReader(reading().backend(), reading().source());
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
