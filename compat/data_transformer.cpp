#include "caffe/compat/caffe/data_transformer.hpp"

#include <algorithm>
#include <random>

#include "caffe/compat/caffe/util/rng.hpp"
#include "caffe/data/parsers/datum_view.hpp"
#include "caffe/data/transformers/datum_transformer.hpp"
#include "caffe/data/transformers/single_label.hpp"
#include "caffe/error.hpp"

namespace caffe::bvlc {
namespace {

// Decodes an encoded datum into `decoded`.
data::ImageView PixelsOf(const Datum& datum, data::ColorMode mode, data::Image* decoded) {
  const data::DatumView view = data::ViewOf(datum);
  if (!view.encoded) return data::PixelsOf(view);
  *decoded = data::DecodeImage(view.data, mode);
  return decoded->view();
}

}  // namespace

template <typename Dtype>
struct DataTransformer<Dtype>::Work {
  Work(const TransformationParameter& param, Phase phase, unsigned int seed)
      : transformer(param, phase == TRAIN, seed, "transform"), rng(seed) {}

  // Writes one image and advances the count, so that the next image uses other random numbers.
  void Transform(const data::ImageView& image, int64_t count, Dtype* out) {
    const int64_t size = transformer.OutputExtents(image.extents).count();
    Require(size == count, "Transform: an image of ", image.extents, " gives ", size,
            " values, the blob has ", count, " for each; reshape it as InferBlobShape says");
    values.resize(static_cast<size_t>(size));
    transformer.Transform(image, draws++, values.data());
    std::copy(values.begin(), values.end(), out);
  }

  data::DatumTransformer transformer;
  rng_t rng;
  uint64_t draws = 0;
  vector<float> values;
};

template <typename Dtype>
DataTransformer<Dtype>::DataTransformer(const TransformationParameter& param, Phase phase)
    : param_(param), phase_(phase), work_(new Work(param, phase, /*seed=*/0)) {
  data::RefuseSingleLabelAugmentation(
      param, "DataTransformer does not have it; use a Data or ImageData layer");
}

template <typename Dtype>
DataTransformer<Dtype>::~DataTransformer() = default;

template <typename Dtype>
void DataTransformer<Dtype>::InitRand() {
  work_.reset(new Work(param_, phase_, static_cast<unsigned int>((*caffe_rng())())));
}

template <typename Dtype>
int DataTransformer<Dtype>::Rand(int n) {
  Require(n > 0, "Rand(", n, "): there is no number in [0, ", n, ")");
  return std::uniform_int_distribution<int>(0, n - 1)(work_->rng);
}

template <typename Dtype>
void DataTransformer<Dtype>::Transform(const Datum& datum, Blob<Dtype>* transformed_blob) {
  Transform(vector<Datum>{datum}, transformed_blob);
}

template <typename Dtype>
void DataTransformer<Dtype>::Transform(const vector<Datum>& datum_vector,
                                       Blob<Dtype>* transformed_blob) {
  const int items = static_cast<int>(datum_vector.size());
  Require(items > 0 && items <= transformed_blob->num(), "Transform: ", items,
          " images for a blob of ", transformed_blob->num(), " items");
  Dtype* out = transformed_blob->mutable_cpu_data();
  data::Image decoded;
  for (const Datum& datum : datum_vector) {
    const data::ImageView image = PixelsOf(datum, work_->transformer.color_mode(), &decoded);
    work_->Transform(image, transformed_blob->count(1), out);
    out += transformed_blob->count(1);
  }
}

template <typename Dtype>
void DataTransformer<Dtype>::Transform(Blob<Dtype>* input_blob, Blob<Dtype>* transformed_blob) {
  const data::ImageExtents extents{input_blob->channels(), input_blob->height(),
                                   input_blob->width()};
  if (transformed_blob->count() == 0) {
    const data::ImageExtents to = work_->transformer.OutputExtents(extents);
    transformed_blob->Reshape(input_blob->num(), to.channels, to.height, to.width);
  }
  Require(input_blob->num() <= transformed_blob->num(), "Transform: ", input_blob->num(),
          " images for a blob of ", transformed_blob->num(), " items");
  const Dtype* const pixels = input_blob->cpu_data();
  const vector<float> floats(pixels, pixels + input_blob->count());
  for (int i = 0; i < input_blob->num(); ++i) {
    work_->Transform({.extents = extents, .floats = floats.data() + i * extents.count()},
                     transformed_blob->count(1),
                     transformed_blob->mutable_cpu_data() + i * transformed_blob->count(1));
  }
}

template <typename Dtype>
vector<int> DataTransformer<Dtype>::InferBlobShape(const Datum& datum) {
  data::Image decoded;
  const data::ImageView image = PixelsOf(datum, work_->transformer.color_mode(), &decoded);
  const data::ImageExtents extents = work_->transformer.OutputExtents(image.extents);
  return {1, extents.channels, extents.height, extents.width};
}

template <typename Dtype>
vector<int> DataTransformer<Dtype>::InferBlobShape(const vector<Datum>& datum_vector) {
  Require(!datum_vector.empty(), "InferBlobShape: there is no datum");
  vector<int> shape = InferBlobShape(datum_vector[0]);
  shape[0] = static_cast<int>(datum_vector.size());
  return shape;
}

template class DataTransformer<float>;
template class DataTransformer<double>;

}  // namespace caffe::bvlc
