#include "caffe/data/batch_filler.hpp"

#include <utility>

#include "caffe/error.hpp"
#include "caffe/ops/images.hpp"

namespace caffe::data {

namespace {

constexpr const char* kHowToGetSameChannels =
    "set transform_param { force_color: true } or { force_gray: true }, which decode encoded "
    "images so, or make the database anew: caffe data import stores three channels, with --gray "
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
      with_label_(with_label),
      device_transform_(std::move(device_transform)) {}

// With a crop, larger images are cut to the extents of the first one.
ImageExtents BatchFiller::ImageExtentsFor(const ImageExtents& output) const {
  return source_.transformer().has_fixed_size() ? first_image_ : output;
}

Shape BatchFiller::LabelShapeOf(const ImageExtents& output) const {
  if (!with_label_) return Shape{0};
  if (!source_.has_label_images()) return Shape{batch_size_};
  return Shape{batch_size_, 1, output.height, output.width};
}

int64_t BatchFiller::BytesOfBuffer(const ImageExtents& output) const {
  const auto image =
      static_cast<int64_t>(device_transform_ ? ImageExtentsFor(output).count() +
                                                   ops::ImageWindow::kNumbers * sizeof(float)
                                             : output.count() * sizeof(float));
  const auto labels = LabelShapeOf(output).count() * static_cast<int64_t>(sizeof(float));
  return labels + batch_size_ * (image + static_cast<int64_t>(sizeof(RecordSequence::Item)));
}

void BatchFiller::Allocate(BatchBuffer* buffer) const {
  buffer->items.resize(batch_size_);
  buffer->boxes.resize(source_.has_boxes() ? batch_size_ : 0);
  buffer->batch.size = batch_size_;
}

void BatchFiller::Prepare(BatchBuffer* buffer, const ImageExtents& output, Layout layout) const {
  Batch& batch = buffer->batch;
  if (!(output == buffer->extents)) {
    buffer->extents = output;
    batch.data_shape = ShapeOf(output);
    batch.label_shape = LabelShapeOf(output);
    buffer->labels.resize(batch.label_shape.count());
    if (device_transform_) {
      buffer->image_extents = ImageExtentsFor(output);
      batch.image_shape = ShapeOf(buffer->image_extents);
      buffer->images.Reserve(static_cast<size_t>(buffer->image_extents.count()) * batch_size_);
      buffer->windows.resize(static_cast<size_t>(ops::ImageWindow::kNumbers) * batch_size_);
    } else {
      buffer->data.Reserve(static_cast<size_t>(output.count()) * batch_size_);
    }
  }
  batch.data = buffer->data.get();
  batch.layout = layout;
  batch.images = buffer->images.get();
  batch.windows = buffer->windows.data();
  batch.labels = with_label_ ? buffer->labels.data() : nullptr;
}

void BatchFiller::Fill(BatchBuffer* buffer, int slot, RecordLoader* loader) const {
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
  FillImage(sample, buffer, slot);
  if (with_label_) FillLabel(&sample, buffer, slot);
}

void BatchFiller::FillImage(const RecordLoader::Sample& sample, BatchBuffer* buffer,
                            int slot) const {
  const DatumTransformer& transformer = source_.transformer();
  const uint64_t number = buffer->items[slot].number;
  if (device_transform_) {
    transformer.Pack(sample.image, number, buffer->image_extents,
                     buffer->images.get() + buffer->image_extents.count() * slot,
                     buffer->windows.data() + ops::ImageWindow::kNumbers * slot);
  } else {
    transformer.Transform(sample.image, number, buffer->data.get() + buffer->extents.count() * slot,
                          buffer->batch.layout);
  }
}

void BatchFiller::FillLabel(RecordLoader::Sample* sample, BatchBuffer* buffer, int slot) const {
  const DatumTransformer& transformer = source_.transformer();
  const ImageExtents& image = sample->image.extents;
  const uint64_t number = buffer->items[slot].number;
  if (source_.has_label_images()) {
    const int64_t pixels = int64_t{buffer->extents.height} * buffer->extents.width;
    transformer.TransformLabels(image, number, sample->label_image.floats,
                                buffer->labels.data() + pixels * slot);
  } else if (source_.has_boxes()) {
    transformer.TransformBoxes(image, number, &sample->boxes);
    buffer->boxes[slot] = std::move(sample->boxes);
  } else {
    buffer->labels[slot] = sample->label;
  }
}

}  // namespace caffe::data
