// A batch of images and labels, as returned by a BatchSource.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "caffe/device/host_memory.hpp"
#include "caffe/shape.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::data {

// The part of the transform that a device applies to batches of bytes: ops::TransformImages and its
// third operand.
struct DeviceTransform {
  float scale = 1;
  Shape mean_shape;                                // C or C,H,W
  std::shared_ptr<const std::vector<float>> mean;  // null if there is none
};

// Requested form of a batch's images.
struct BatchForm {
  Layout layout = Layout::kPlain;  // layout and dtype are not used for batches of bytes
  DType dtype = DType::kFloat;
  HostMemory memory = {};  // allocates the images; empty: any host memory
};

// Owned by the source; valid until its next Next().
struct Batch {
  // Values of type `dtype` in `layout`, 64-byte aligned. Null in batches of bytes.
  const void* data = nullptr;
  DType dtype = DType::kFloat;
  Layout layout = Layout::kPlain;
  const float* floats() const { return static_cast<const float*>(data); }
  const uint8_t* images = nullptr;  // N times C*H*W of image_shape
  const float* windows = nullptr;   // N times ops::ImageWindow
  const float* labels = nullptr;    // null if there are no labels
  // If labels are images: height and width, for each of the N items, of the visible part of its
  // image, without padding.
  const float* shown_sizes = nullptr;
  Shape data_shape;   // N,C,H,W
  Shape image_shape;  // for batches of bytes: N,C,H,W before the crop
  // N; or N,1,H,W if labels are images; or, for annotated records, 1x1xRx8 with rows (item in the
  // batch, class, instance, xmin, ymin, xmax, ymax, difficult), and unused rows filled with -1. R
  // only grows, so that the net's shapes seldom change.
  Shape label_shape;
  int size = 0;
};

}  // namespace caffe::data
