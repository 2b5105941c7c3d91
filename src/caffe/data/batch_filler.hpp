// BatchFiller: puts images and labels into batches, as the net's floats or as bytes for a device.
#pragma once

#include <optional>

#include "caffe/data/batch_buffer.hpp"
#include "caffe/data/first_record.hpp"
#include "caffe/data/record_source.hpp"

namespace caffe::data {

class BatchFiller {
 public:
  // Fills with floats; with bytes if there is a transform for the device. `source` outlives this.
  BatchFiller(const RecordSource& source, const FirstRecord& first, bool with_label,
              std::optional<DeviceTransform> device_transform);

  int batch_size() const { return batch_size_; }
  bool with_label() const { return with_label_; }
  const DeviceTransform* device_transform() const {
    return device_transform_ ? &*device_transform_ : nullptr;
  }
  // N,C,H,W of a batch of so many images of these extents.
  static Shape ShapeOf(const ImageExtents& extents, int64_t size) {
    return Shape{size, extents.channels, extents.height, extents.width};
  }
  // N; N,K,1,1 of labels of K numbers; N,1,H,W where labels are images; of annotated records it is
  // another.
  Shape LabelShapeOf(const ImageExtents& output, int64_t size) const;
  // Extents of the bytes of an image whose transform gives `output`.
  ImageExtents ImageExtentsFor(const ImageExtents& output) const;

  // Memory of a buffer for images that are `output` after the transform.
  int64_t BytesOfBuffer(const ImageExtents& output) const;
  // Once for each buffer, for full batches.
  void Allocate(BatchBuffer* buffer) const;
  // Sizes the buffer for as many images as it has items, which are `output` after the transform,
  // and will have that form.
  void Prepare(BatchBuffer* buffer, const ImageExtents& output, const BatchForm& form) const;
  // Loads the record of this slot and puts it into its place. Throws InvalidArgument for an image
  // of other extents than the batch's. Slots may be filled by different threads, each of which has
  // a loader and, for its floats on the way to another type, memory of its own.
  void Fill(BatchBuffer* buffer, int slot, RecordLoader* loader, std::vector<float>* floats) const;

 private:
  void FillImage(const RecordLoader::Sample& sample, BatchBuffer* buffer, int slot,
                 std::vector<float>* floats) const;
  void FillLabel(RecordLoader::Sample* sample, BatchBuffer* buffer, int slot) const;

  const RecordSource& source_;
  const ImageExtents first_image_;
  const int batch_size_, label_numbers_;
  const bool with_label_;
  const std::optional<DeviceTransform> device_transform_;
};

// What the transformer would do to images of so many channels.
DeviceTransform DeviceTransformOf(const DatumTransformer& transformer, int channels);

}  // namespace caffe::data
