// Reads and transforms images for inference: files, folders, lists, videos and cameras.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "caffe/data/readers/video_frames.hpp"
#include "caffe/data/transformers/inference_transform.hpp"
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
  // Mean and scale, including what `info` says, but without its mean image.
  TransformationParameter Transform() const;
  bool says_mean() const { return !data.empty() || !mean_file.empty() || !mean_values.empty(); }
  const BlobProto* mean_image() const {
    return info.has_mean() && !says_mean() ? &info.mean() : nullptr;
  }
};

struct ShownImage {
  std::string name;     // path, or "video#12"
  data::Image pixels;   // as decoded, blue first
  data::SeenPart seen;  // set by ImageFeed::Next
};

// Reads and transforms the next batch while the caller works on the one before.
class ImageFeed {
 public:
  struct Extents {
    int batch = 1;
    data::ImageExtents image;
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
  std::vector<ShownImage> Read();
  std::vector<ShownImage> ReadFiles();
  std::vector<ShownImage> ReadFrames();
  Batch Prepare();
  std::vector<float> Transformed(const ShownImage& image) const;

  const int batch_;
  const data::InferenceTransform transform_;
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
