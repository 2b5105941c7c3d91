// transform_param: crop, mirror, mean and scale, from pixels to the net's floats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/data/parsers/datum_view.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/transformers/mean_image.hpp"
#include "caffe/data/transformers/object_box.hpp"
#include "caffe/data/transformers/transform_rows.hpp"
#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/shape.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::data {

// Computes y = (x - mean) * scale on a window of the image: a random one in training, the centre in
// testing. A mean image is read at the pixel's position in the whole image, before mirroring. If
// images were resized at random (ResizesAtRandom, random_resized_crop), its centre is subtracted
// from the window instead, as in NVCaffe, also in testing.
// Random choices depend only on (seed, stream, draw_index); Transform() is thread-safe.
class CAFFE_EXPORT DatumTransformer {
 public:
  // Reads the mean file. Throws InvalidArgument for options that exclude each other.
  // transform_param.random_seed, if set, replaces `seed`, and `mean` replaces the mean file.
  DatumTransformer(const TransformationParameter& param, bool train, uint64_t seed,
                   const std::string& stream, const BlobProto* mean = nullptr);

  // Extents of the output of Transform() for an image. Throws InvalidArgument if the crop is larger
  // than the image or the mean has the wrong size.
  ImageExtents OutputExtents(const ImageExtents& image) const;
  // The same, for a batch of one.
  Shape OutputShape(int channels, int height, int width) const;

  // Writes channels one after the other (NCHW) or interleaved (channels-last); the values are the
  // same.
  void Transform(const ImageView& image, uint64_t draw_index, float* out,
                 Layout layout = Layout::kPlain) const;
  // For a datum that is not encoded.
  void Transform(const DatumView& datum, uint64_t draw_index, float* out) const {
    Transform(PixelsOf(datum), draw_index, out);
  }

  // Leaves the transform to a device: copies the image's untransformed bytes to `slot`, which has
  // room for one image of `slot_extents`, and four numbers (ops::ImageWindow) to `window`. An image
  // of other extents is cropped while copying. Throws InvalidArgument for an image of floats.
  void Pack(const ImageView& image, uint64_t draw_index, const ImageExtents& slot_extents,
            uint8_t* slot, float* window) const;
  // The mean: empty, one value per channel, or an image. Throws InvalidArgument if there are
  // several mean values, but not one per channel.
  MeanImage Mean(int channels) const;
  float scale() const { return param_.scale(); }

  // Transforms the boxes of that image: into the window, and mirrored with it. emit_constraint
  // decides which remain.
  void TransformBoxes(const ImageExtents& image, uint64_t draw_index,
                      std::vector<ObjectBox>* boxes) const;

  // Transforms that image's labels, one for each pixel, in the same way as Transform() moves the
  // pixels; without mean and scale.
  void TransformLabels(const ImageExtents& image, uint64_t draw_index, const float* labels,
                       float* out) const;

  // True if all outputs have the same height and width, regardless of the images' sizes.
  bool has_fixed_size() const { return crop_height_ > 0; }

  // The mode in which encoded images must be decoded.
  ColorMode color_mode() const;

 private:
  struct Window {
    int top = 0, left = 0;
    bool mirror = false;
  };

  void SetMean(MeanImage mean);
  // Throws InvalidArgument unless there is no mean_value, a single one, or one for each channel.
  void CheckMeanValues(int channels) const;
  Window ChooseWindow(const ImageExtents& image, uint64_t draw_index) const;
  float MeanOf(int channel) const;
  // The mean image in both channel orders.
  struct OrderedMean {
    MeanImage planes;
    std::vector<float> interleaved;
  };
  static OrderedMean InBothOrders(MeanImage mean);
  const OrderedMean& MeanFor(const Window& window) const {
    return window.mirror ? mirrored_mean_ : mean_;
  }
  // In the following functions, rows and columns are those of the output. Returns the mean's pixel
  // for one of them, as an index within a channel.
  int64_t MeanIndex(const ImageExtents& image, const Window& window, int row, int column) const;
  // Pointer to the mean image from that pixel on, or null.
  const float* MeanRow(const ImageExtents& image, const Window& window, int channel, int row,
                       int column) const;
  // The same with interleaved channels.
  const float* MeanPixels(const ImageExtents& image, const Window& window, int row,
                          int column) const;
  // Sets the mean for a row of one channel from that pixel on.
  void SetMean(const ImageExtents& image, const Window& window, int channel, int row, int column,
               RowTransform* transform) const;

  // Converts between channel orders. In "planes", channels are stored one after the other.
  template <typename T>
  void PlanesToPlanes(const T* pixels, const ImageExtents& image, const Window& window,
                      float* out) const;
  template <typename T>
  void PlanesToInterleaved(const T* pixels, const ImageExtents& image, const Window& window,
                           float* out) const;
  void InterleavedToPlanes(const uint8_t* pixels, const ImageExtents& image, const Window& window,
                           float* out) const;
  void InterleavedToInterleaved(const uint8_t* pixels, const ImageExtents& image,
                                const Window& window, float* out) const;

  const TransformationParameter param_;
  const bool train_;
  const RandomStream random_;
  int crop_height_ = 0, crop_width_ = 0;  // 0: the whole image
  OrderedMean mean_;
  OrderedMean mirrored_mean_;       // mirrored, so that it is read in the order of the output
  bool is_mean_of_window_ = false;  // has the size of the window, not of the whole image
};

}  // namespace caffe::data
