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

// Computes y = (x - mean) * scale on a window of the image: a random one in training, the centre
// in testing. A mean image is read at the pixel's place in the whole image, before mirroring; where
// images are resized at random before (ResizesAtRandom, random_resized_crop), its centre is
// subtracted from the window, as in NVCaffe; in testing, too.
// Random choices depend on (seed, stream, draw_index) alone; Transform() may be called from any
// number of threads.
class CAFFE_EXPORT DatumTransformer {
 public:
  // Reads the mean file. Throws InvalidArgument for options that exclude each other.
  // transform_param.random_seed, when given, takes the place of `seed`, and `mean` that of a mean
  // file.
  DatumTransformer(const TransformationParameter& param, bool train, uint64_t seed,
                   const std::string& stream, const BlobProto* mean = nullptr);

  // Extents of what Transform() writes for an image. Throws InvalidArgument when the crop is larger
  // than the image or the mean does not fit it.
  ImageExtents OutputExtents(const ImageExtents& image) const;
  // The same, for a batch of one.
  Shape OutputShape(int channels, int height, int width) const;

  // Writes channels one after the other (plain) or interleaved (channels-last); the numbers are the
  // same.
  void Transform(const ImageView& image, uint64_t draw_index, float* out,
                 Layout layout = Layout::kPlain) const;
  // A datum that is not encoded.
  void Transform(const DatumView& datum, uint64_t draw_index, float* out) const {
    Transform(PixelsOf(datum), draw_index, out);
  }

  // Leaves the same to a device: the image's bytes as they are go to `slot`, which has room for one
  // of `slot_extents`, and four numbers (ops::ImageWindow) to `window`. An image of other extents
  // is cut on the way. Throws InvalidArgument for an image of floats.
  void Pack(const ImageView& image, uint64_t draw_index, const ImageExtents& slot_extents,
            uint8_t* slot, float* window) const;
  // What is subtracted: nothing (no values), one value per channel, or the mean image. Throws
  // InvalidArgument when there are several mean values, but not one per channel.
  MeanImage Mean(int channels) const;
  float scale() const { return param_.scale(); }

  // Moves the boxes of that image along: into the window, and mirrored with it. emit_constraint
  // decides which stay.
  void TransformBoxes(const ImageExtents& image, uint64_t draw_index,
                      std::vector<ObjectBox>* boxes) const;

  // Writes that image's labels, one for each pixel, as Transform() moves the pixels; neither mean
  // nor scale apply.
  void TransformLabels(const ImageExtents& image, uint64_t draw_index, const float* labels,
                       float* out) const;

  // Whether all results have the same height and width, whatever the images have.
  bool has_fixed_size() const { return crop_height_ > 0; }

  // How encoded images have to be decoded.
  ColorMode color_mode() const;

 private:
  struct Window {
    int top = 0, left = 0;
    bool mirror = false;
  };

  void SetMean(MeanImage mean);
  // Throws InvalidArgument unless there is none, one, or one mean_value for each channel.
  void CheckMeanValues(int channels) const;
  Window ChooseWindow(const ImageExtents& image, uint64_t draw_index) const;
  float MeanOf(int channel) const;
  // The mean image in both orders of channels.
  struct OrderedMean {
    MeanImage planes;
    std::vector<float> interleaved;
  };
  static OrderedMean InBothOrders(MeanImage mean);
  const OrderedMean& MeanFor(const Window& window) const {
    return window.mirror ? mirrored_mean_ : mean_;
  }
  // What follows counts rows and columns as they come out. The pixel of the mean for one of them,
  // counted within a channel.
  int64_t MeanIndex(const ImageExtents& image, const Window& window, int row, int column) const;
  // The mean image from there on, or null.
  const float* MeanRow(const ImageExtents& image, const Window& window, int channel, int row,
                       int column) const;
  // The same with interleaved channels.
  const float* MeanPixels(const ImageExtents& image, const Window& window, int row,
                          int column) const;
  // Sets what is subtracted from a row of one channel from there on.
  void SetMean(const ImageExtents& image, const Window& window, int channel, int row, int column,
               RowTransform* transform) const;

  // From one order of channels to the other or the same. "Planes" are channels one after the other.
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
  OrderedMean mirrored_mean_;       // from right to left, so that it is read as pixels come out
  bool is_mean_of_window_ = false;  // has the window's size, not the whole image's
};

}  // namespace caffe::data
