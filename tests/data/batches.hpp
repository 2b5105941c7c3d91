// Batches of each kind of records, from options that a test can change.
#pragma once

#include "caffe/data/batch_source.hpp"
#include "caffe/data/sources/annotated_source.hpp"
#include "caffe/data/sources/datum_source.hpp"
#include "caffe/data/sources/image_list_source.hpp"
#include "caffe/data/sources/window_source.hpp"

namespace caffe::data {

struct DatumOptions : BatchSourceOptions {
  DataParameter data;
};
struct DatumBatches final : BatchSource {
  explicit DatumBatches(const DatumOptions& options)
      : BatchSource(MakeDatumSource(options.data, options), options) {}
};

struct AnnotatedOptions : DatumOptions {
  AnnotatedDataParameter annotated;
};
struct AnnotatedBatches final : BatchSource {
  explicit AnnotatedBatches(const AnnotatedOptions& options)
      : BatchSource(MakeAnnotatedSource(options.data, options.annotated, options), options) {}
};

struct WindowOptions : BatchSourceOptions {
  WindowDataParameter windows;
};
struct WindowBatches final : BatchSource {
  explicit WindowBatches(const WindowOptions& options)
      : BatchSource(MakeWindowSource(options.windows, options), options) {}
};

struct ImageListBatches final : BatchSource {
  explicit ImageListBatches(const ImageDataParameter& images,
                            const BatchSourceOptions& options = {.layer = "l"})
      : BatchSource(MakeImageListSource(images, options), options) {}
};

}  // namespace caffe::data
