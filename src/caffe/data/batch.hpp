// A batch of images and labels, as a BatchSource gives it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "caffe/device/host_memory.hpp"
#include "caffe/shape.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::data {

// What a device does with batches of bytes: ops::TransformImages and its third operand.
struct DeviceTransform {
  float scale = 1;
  Shape mean_shape;                                // C or C,H,W
  std::shared_ptr<const std::vector<float>> mean;  // null: none
};

// How a batch's images are wanted.
struct BatchForm {
  Layout layout = Layout::kPlain;  // this and the type: not of batches of bytes
  DType dtype = DType::kFloat;
  HostMemory memory = {};  // makes the memory they lie in; none: any will do
};

// Borrowed from the source until its next Next().
struct Batch {
  // Numbers of this type in this layout, 64-byte aligned. Null in batches of bytes.
  const void* data = nullptr;
  DType dtype = DType::kFloat;
  Layout layout = Layout::kPlain;
  const float* floats() const { return static_cast<const float*>(data); }
  const uint8_t* images = nullptr;  // N times C*H*W of image_shape
  const float* windows = nullptr;   // N times ops::ImageWindow
  const float* labels = nullptr;    // null without labels
  // Where labels are images: N times height and width of what a batch's item shows of its image,
  // without padding.
  const float* shown_sizes = nullptr;
  Shape data_shape;   // N,C,H,W
  Shape image_shape;  // of batches of bytes: N,C,H,W before the crop
  // N; N,1,H,W where labels are images; of annotated records 1x1xRx8 with rows (item in the batch,
  // class, instance, xmin, ymin, xmax, ymax, difficult), unused rows -1 throughout. R only grows,
  // so that a net seldom changes.
  Shape label_shape;
  int size = 0;
};

}  // namespace caffe::data
