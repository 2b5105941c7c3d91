#include "caffe/data/batch_filler.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "caffe/data/transformers/erasing.hpp"
#include "caffe/data/transformers/transform_rows.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/images.hpp"

namespace caffe::data {

namespace {

constexpr const char* kHowToGetSameChannels =
    "set transform_param { force_color: true } or { force_gray: true }, which decode encoded "
    "images so, or make the database again: caffe data import stores three channels, with --gray "
    "one";

}  // namespace

DeviceTransform DeviceTransformOf(const DatumTransformer& transformer, int channels) {
  DeviceTransform transform{.scale = transformer.scale()};
  MeanImage mean = transformer.Mean(channels);
  if (mean.values.empty()) return transform;
  const ImageExtents& extents = mean.extents;
  transform.mean_shape = static_cast<size_t>(extents.channels) == mean.values.size()
                             ? Shape{extents.channels}
                             : Shape{extents.channels, extents.height, extents.width};
  transform.mean = std::make_shared<const std::vector<float>>(std::move(mean.values));
  return transform;
}

BatchFiller::BatchFiller(const RecordSource& source, const FirstRecord& first, bool with_label,
                         std::optional<DeviceTransform> device_transform)
    : source_(source),
      first_image_(first.image),
      batch_size_(static_cast<int>(source.reading().batch_size())),
      label_numbers_(first.label_numbers),
      with_label_(with_label),
      device_transform_(std::move(device_transform)) {}

// With a crop, larger images are cropped to the size of the first one.
ImageExtents BatchFiller::ImageExtentsFor(const ImageExtents& output) const {
  return source_.transformer().has_fixed_size() ? first_image_ : output;
}

Shape BatchFiller::LabelShapeOf(const ImageExtents& output, int64_t size) const {
  if (!with_label_) return Shape{0};
  if (label_numbers_ > 0) return Shape{size, label_numbers_, 1, 1};
  if (!source_.has_label_images()) return Shape{size};
  return Shape{size, 1, output.height, output.width};
}

int64_t BatchFiller::BytesOfBuffer(const ImageExtents& output) const {
  const auto image =
      static_cast<int64_t>(device_transform_ ? ImageExtentsFor(output).count() +
                                                   ops::ImageWindow::kNumbers * sizeof(float)
                                             : output.count() * sizeof(float));
  const auto labels =
      LabelShapeOf(output, batch_size_).count() * static_cast<int64_t>(sizeof(float));
  return labels + batch_size_ * (image + static_cast<int64_t>(sizeof(RecordSequence::Item)));
}

void BatchFiller::Allocate(BatchBuffer* buffer) const {
  buffer->items.resize(batch_size_);
  buffer->boxes.resize(source_.has_boxes() ? batch_size_ : 0);
  buffer->shown_sizes.resize(source_.has_label_images() ? 2 * batch_size_ : 0);
  buffer->batch.size = batch_size_;
}

void BatchFiller::Prepare(BatchBuffer* buffer, const ImageExtents& output,
                          const BatchForm& form) const {
  Batch& batch = buffer->batch;
  const auto size = static_cast<int64_t>(buffer->items.size());
  if (!(output == buffer->extents) || batch.size != size) {
    buffer->extents = output;
    batch.size = static_cast<int>(size);
    batch.data_shape = ShapeOf(output, size);
    batch.label_shape = LabelShapeOf(output, size);
    buffer->labels.resize(batch.label_shape.count());
    if (device_transform_) {
      buffer->image_extents = ImageExtentsFor(output);
      batch.image_shape = ShapeOf(buffer->image_extents, size);
      buffer->windows.resize(static_cast<size_t>(ops::ImageWindow::kNumbers) * batch_size_);
    }
  }
  if (device_transform_) {
    buffer->images.Reserve(static_cast<size_t>(batch.image_shape.count()), form.memory);
  } else {
    buffer->data.Reserve(SizeOf(form.dtype) * static_cast<size_t>(batch.data_shape.count()),
                         form.memory);
  }
  batch.data = buffer->data.get();
  batch.dtype = form.dtype;
  batch.layout = form.layout;
  batch.images = static_cast<const uint8_t*>(buffer->images.get());
  batch.windows = buffer->windows.data();
  batch.labels = with_label_ ? buffer->labels.data() : nullptr;
  batch.shown_sizes = buffer->shown_sizes.data();
}

void BatchFiller::Fill(BatchBuffer* buffer, int slot, RecordLoader* loader,
                       std::vector<float>* floats) const {
  const RecordSequence::Item& item = buffer->items[slot];
  RecordLoader::Sample sample = loader->Load(item.record.value, item.number);
  const ImageExtents extents = source_.transformer().OutputExtents(sample.image.extents);
  if (!(extents == buffer->extents)) {
    throw InvalidArgument(StrCat(
        "an image of ", sample.image.extents, " (channels x height x width), but this batch is of ",
        buffer->extents, " images, as its first record; ",
        extents.channels == buffer->extents.channels ? source_.HowToGetOneSize()
                                                     : kHowToGetSameChannels));
  }
  FillImage(sample, buffer, slot, floats);
  if (with_label_) FillLabel(&sample, buffer, slot);
}

void BatchFiller::FillImage(const RecordLoader::Sample& sample, BatchBuffer* buffer, int slot,
                            std::vector<float>* floats) const {
  const DatumTransformer& transformer = source_.transformer();
  const uint64_t number = buffer->items[slot].number;
  if (device_transform_) {
    transformer.Pack(
        sample.image, number, buffer->image_extents,
        static_cast<uint8_t*>(buffer->images.get()) + buffer->image_extents.count() * slot,
        buffer->windows.data() + ops::ImageWindow::kNumbers * slot);
    return;
  }
  const Batch& batch = buffer->batch;
  const int64_t count = buffer->extents.count();
  char* const place =
      static_cast<char*>(buffer->data.get()) + count * slot * int64_t(SizeOf(batch.dtype));
  const bool is_float = batch.dtype == DType::kFloat;
  if (!is_float) floats->resize(count);
  float* const image = is_float ? reinterpret_cast<float*>(place) : floats->data();
  transformer.Transform(sample.image, number, image, batch.layout);
  if (source_.erasing() != nullptr)
    source_.erasing()->Apply(buffer->extents, batch.layout, number, image);
  if (!is_float) ConvertFloats(image, count, batch.dtype, place);
}

void BatchFiller::FillLabel(RecordLoader::Sample* sample, BatchBuffer* buffer, int slot) const {
  const DatumTransformer& transformer = source_.transformer();
  const ImageExtents& image = sample->image.extents;
  const uint64_t number = buffer->items[slot].number;
  if (source_.has_label_images()) {
    const int64_t pixels = int64_t{buffer->extents.height} * buffer->extents.width;
    transformer.TransformLabels(image, number, sample->label_image.floats,
                                buffer->labels.data() + pixels * slot);
    float* const shown = buffer->shown_sizes.data() + 2 * int64_t{slot};
    shown[0] = static_cast<float>(std::min(buffer->extents.height, sample->shown_height));
    shown[1] = static_cast<float>(std::min(buffer->extents.width, sample->shown_width));
  } else if (source_.has_boxes()) {
    transformer.TransformBoxes(image, number, &sample->boxes);
    buffer->boxes[slot] = std::move(sample->boxes);
  } else {
    const std::span<const float> numbers = sample->label_numbers;
    Require(numbers.size() == static_cast<size_t>(label_numbers_), "the record has ",
            numbers.size(), " numbers in float_data in addition to its data, the first record has ",
            label_numbers_, "; labels of several numbers must be as long in all records");
    if (numbers.empty()) {
      buffer->labels[slot] = sample->label;
    } else {
      std::copy(numbers.begin(), numbers.end(),
                buffer->labels.begin() + int64_t{slot} * label_numbers_);
    }
  }
}

}  // namespace caffe::data
