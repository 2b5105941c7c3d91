// Reads and transforms images for inference: files, folders, lists, videos and cameras.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "caffe/data/readers/video_frames.hpp"
#include "caffe/data/transformers/datum_transformer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {

// Options: which images to read, and how to preprocess them.
struct ImageFlags {
  std::vector<std::string> images;  // files and folders
  std::string list, video;
  int camera = -1, frames = 0;
  std::string data, mean_file, mean_values;
  double scale = 1;
  int short_side = 0;
  int batch = 0;
  CLI::Option* scale_option = nullptr;
  ModelInfo info;  // the defaults for flags that are not given

  void Add(CLI::App& app);
  // Throws InvalidArgument if options contradict each other.
  void Check() const;
  // The transformation for a net whose input has this height and width, including what `info` says,
  // but without its mean image.
  TransformationParameter Transform(int height, int width) const;
  bool says_mean() const { return !data.empty() || !mean_file.empty() || !mean_values.empty(); }
  const BlobProto* mean_image() const {
    return info.has_mean() && !says_mean() ? &info.mean() : nullptr;
  }
};

// The part of an image that the net's input covers, in pixels of the image.
struct SeenPart {
  double top = 0, left = 0, height = 0, width = 0;
};

struct ShownImage {
  std::string name;    // path, or "video#12"
  data::Image pixels;  // as decoded, blue first
  SeenPart seen;       // set by ImageFeed::Next
};

// Reads and transforms the next batch while the caller works on the one before.
class ImageFeed {
 public:
  struct Extents {
    int batch = 1, channels = 3, height = 0, width = 0;
  };
  struct Batch {
    std::vector<ShownImage> images;  // empty at the end
    std::vector<float> values;       // N,C,H,W
  };

  // Throws InvalidArgument for options that do not fit the net, IoError for files it cannot open.
  ImageFeed(const ImageFlags& flags, const Extents& extents);
  ~ImageFeed();

  // Skips files that cannot be read as images, or do not fit the net, with a warning.
  Batch Next();
  int64_t num_failed() const { return num_failed_; }

 private:
  void CheckResize() const;
  bool keeps_proportions() const {
    return resize_.resize_mode() == ResizeParameter::FIT_SMALL_SIZE;
  }
  std::vector<ShownImage> Read();
  std::vector<ShownImage> ReadFiles();
  std::vector<ShownImage> ReadFrames();
  Batch Prepare();
  std::vector<float> Transformed(const ShownImage& image, size_t count) const;
  // The size to which an image is resized before its centre is cut out.
  struct Size {
    int height = 0, width = 0;
  };
  Size SizeBeforeCut(const data::ImageExtents& image) const;
  SeenPart PartSeen(const data::ImageExtents& image) const;
  void Transform(const data::Image& image, float* values) const;

  const Extents extents_;
  const ResizeParameter resize_;
  const data::DatumTransformer transformer_;
  data::ImageExtents mean_;  // of the mean image, if any
  std::vector<std::string> files_;
  size_t next_file_ = 0;
  std::unique_ptr<data::VideoFrames> frames_;
  std::string video_name_;
  int64_t next_frame_ = 0, last_frame_ = 0;  // last_frame_ 0: no limit
  int64_t num_failed_ = 0;                   // in batches that were returned
  int64_t num_failed_ahead_ = 0;
  std::future<Batch> next_;  // last, because its thread uses the members above
};

}  // namespace caffe::tools
