// Parses, decodes and transforms Datum records, as a Data layer does.
#include "caffe/data/augmenting_loader.hpp"
#include "caffe/data/record_loader.hpp"
#include "caffe/data/transformers/datum_transformer.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/fuzz/fuzz_input.hpp"

FUZZ_TARGET(datum) {
  namespace source = caffe::data;
  static const source::DatumTransformer transformer = [] {
    caffe::TransformationParameter param;
    caffe::ParseTextProto("crop_size: 8 mirror: true mean_value: 3 scale: 0.5", "target", &param);
    return source::DatumTransformer(param, /*train=*/true, /*seed=*/1, "fuzz");
  }();
  static source::DatumLoader loader(source::ColorMode::kAsStored);
  return caffe::fuzz::Try([&] {
    const std::string_view record = caffe::fuzz::View(data, size);
    loader.ReadExtents(record, 0);
    const source::RecordLoader::Sample sample = loader.Load(record, 0);
    std::vector<float> out(
        static_cast<size_t>(transformer.OutputExtents(sample.image.extents).count()));
    transformer.Transform(sample.image, size, out.data());
  });
}
