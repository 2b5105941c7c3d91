// Parses, augments and transforms AnnotatedDatum records, as an AnnotatedData layer does.
#include "caffe/data/annotated_loader.hpp"
#include "caffe/data/augmenting_loader.hpp"
#include "caffe/data/transformers/datum_transformer.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/fuzz/fuzz_input.hpp"

FUZZ_TARGET(annotated_datum) {
  namespace source = caffe::data;
  static const caffe::TransformationParameter transform = [] {
    caffe::TransformationParameter param;
    caffe::ParseTextProto(
        "force_color: true mirror: true mean_value: 104 resize_param { height: 12 width: 12 } "
        "expand_param { max_expand_ratio: 2 } emit_constraint { emit_type: CENTER } "
        "distort_param { brightness_prob: 0.5 brightness_delta: 32 hue_prob: 0.5 hue_delta: 18 }",
        "target", &param);
    return param;
  }();
  static const caffe::AnnotatedDataParameter annotated = [] {
    caffe::AnnotatedDataParameter param;
    caffe::ParseTextProto(
        "batch_sampler { sampler { min_scale: 0.3 } sample_constraint { min_jaccard_overlap: 0.3 } "
        "max_trials: 5 max_sample: 1 }",
        "target", &param);
    return param;
  }();
  static const source::DatumTransformer transformer(transform, /*train=*/true, /*seed=*/1, "fuzz");
  static const source::AugmentingLoader::Steps steps =
      source::MakeAugmentations(transform, annotated, /*train=*/true);
  static source::AugmentingLoader loader(
      std::make_unique<source::AnnotatedLoader>(annotated, source::ColorMode::kColor), steps,
      caffe::RandomStream(1, 2));
  return caffe::fuzz::Try([&] {
    source::RecordLoader::Sample sample = loader.Load(caffe::fuzz::View(data, size), size);
    std::vector<float> out(
        static_cast<size_t>(transformer.OutputExtents(sample.image.extents).count()));
    transformer.Transform(sample.image, size, out.data());
    transformer.TransformBoxes(sample.image.extents, size, &sample.boxes);
  });
}
