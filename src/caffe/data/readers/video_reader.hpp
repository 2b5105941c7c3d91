// Reads a video or a camera as a database of images.
#pragma once

#include <memory>
#include <string>

#include "caffe/data/readers/record_reader.hpp"

namespace caffe::data {

// Records are Datum messages with the frames' pixels and label 0; one of every skip_frames + 1
// frames, the first, becomes a record. Keys are "frame N". A video ends and restarts like any
// database; a camera never ends. Throws like VideoFrames::Open.
std::unique_ptr<RecordReader> OpenVideo(const VideoDataParameter& options);

// True for a video, which has an end and can be restarted; false for a camera.
inline bool IsVideo(const VideoDataParameter& options) {
  return options.video_type() == VideoDataParameter::VIDEO;
}

// For messages: the file's name, or "camera 0".
std::string NameOfVideo(const VideoDataParameter& options);

}  // namespace caffe::data
