// BatchFiller: puts images and labels into batches, as floats for the net or as bytes for a device.
#pragma once

#include <optional>

#include "caffe/data/batch_buffer.hpp"
#include "caffe/data/first_record.hpp"
#include "caffe/data/record_source.hpp"

namespace caffe::data {

class BatchFiller {
 public:
  // Fills batches with bytes if there is a device transform, otherwise with floats. `source` must
  // outlive this object.
  BatchFiller(const RecordSource& source, const FirstRecord& first, bool with_label,
              std::optional<DeviceTransform> device_transform);

  int batch_size() const { return batch_size_; }
  bool with_label() const { return with_label_; }
  const DeviceTransform* device_transform() const {
    return device_transform_ ? &*device_transform_ : nullptr;
  }
  // Shape N,C,H,W of a batch of `size` images with these extents.
  static Shape ShapeOf(const ImageExtents& extents, int64_t size) {
    return Shape{size, extents.channels, extents.height, extents.width};
  }
  // N; or N,K,1,1 for labels of K numbers; or N,1,H,W if labels are images. Not for annotated
  // records, whose shape varies.
  Shape LabelShapeOf(const ImageExtents& output, int64_t size) const;
  // Extents of the untransformed image for which the transform gives `output`.
  ImageExtents ImageExtentsFor(const ImageExtents& output) const;

  // Memory of a buffer for images with extents `output` after the transform.
  int64_t BytesOfBuffer(const ImageExtents& output) const;
  // Called once for each buffer; allocates for full batches.
  void Allocate(BatchBuffer* buffer) const;
  // Sizes the buffer for its items, whose images have extents `output` after the transform, in that
  // form.
  void Prepare(BatchBuffer* buffer, const ImageExtents& output, const BatchForm& form) const;
  // Loads the record of this slot into its place. Throws InvalidArgument for an image of other
  // extents than the batch's. Several threads may fill different slots, each with its own loader
  // and its own `floats`, a buffer for conversion to another type.
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

// The transformer's operation on images with this number of channels.
DeviceTransform DeviceTransformOf(const DatumTransformer& transformer, int channels);

}  // namespace caffe::data
