// Reads and writes messages and images.
#pragma once

#include <google/protobuf/message.h>

#include <cstring>
#include <string>
#include <vector>

#include "../common.hpp"
#include "caffe/proto/caffe.pb.h"
#include "format.hpp"
#ifdef USE_OPENCV
#include <opencv2/core/core.hpp>
#endif

#ifndef CAFFE_TMP_DIR_RETRIES
#define CAFFE_TMP_DIR_RETRIES 100
#endif

CAFFE_BVLC_BEGIN
using ::google::protobuf::Message;

void MakeTempDir(string* temp_dirname);
// Returns the name of a file in a new temporary folder.
void MakeTempFilename(string* temp_filename);

// Return false, with the error logged, if the file is not such a message; throw caffe::Error if it
// cannot be read. The OrDie variants throw in both cases.
bool ReadProtoFromTextFile(const char* filename, Message* proto);
inline bool ReadProtoFromTextFile(const string& filename, Message* proto) {
  return ReadProtoFromTextFile(filename.c_str(), proto);
}
void ReadProtoFromTextFileOrDie(const char* filename, Message* proto);
inline void ReadProtoFromTextFileOrDie(const string& filename, Message* proto) {
  ReadProtoFromTextFileOrDie(filename.c_str(), proto);
}
bool ReadProtoFromBinaryFile(const char* filename, Message* proto);
inline bool ReadProtoFromBinaryFile(const string& filename, Message* proto) {
  return ReadProtoFromBinaryFile(filename.c_str(), proto);
}
void ReadProtoFromBinaryFileOrDie(const char* filename, Message* proto);
inline void ReadProtoFromBinaryFileOrDie(const string& filename, Message* proto) {
  ReadProtoFromBinaryFileOrDie(filename.c_str(), proto);
}
// Writes the complete file or nothing.
void WriteProtoToTextFile(const Message& proto, const char* filename);
inline void WriteProtoToTextFile(const Message& proto, const string& filename) {
  WriteProtoToTextFile(proto, filename.c_str());
}
void WriteProtoToBinaryFile(const Message& proto, const char* filename);
inline void WriteProtoToBinaryFile(const Message& proto, const string& filename) {
  WriteProtoToBinaryFile(proto, filename.c_str());
}

// Stores the file's bytes as an encoded datum. Returns false, with the error logged, if it cannot
// be read.
bool ReadFileToDatum(const string& filename, const int label, Datum* datum);
inline bool ReadFileToDatum(const string& filename, Datum* datum) {
  return ReadFileToDatum(filename, -1, datum);
}

// Stores the image's pixels, resized if height and width are given. With an encoding ("jpg", "png")
// the datum holds an image file. Returns false, with the error logged, if it cannot be read.
bool ReadImageToDatum(const string& filename, const int label, const int height, const int width,
                      const bool is_color, const string& encoding, Datum* datum);
inline bool ReadImageToDatum(const string& filename, const int label, const int height,
                             const int width, const bool is_color, Datum* datum) {
  return ReadImageToDatum(filename, label, height, width, is_color, "", datum);
}
inline bool ReadImageToDatum(const string& filename, const int label, const int height,
                             const int width, Datum* datum) {
  return ReadImageToDatum(filename, label, height, width, true, datum);
}
inline bool ReadImageToDatum(const string& filename, const int label, const bool is_color,
                             Datum* datum) {
  return ReadImageToDatum(filename, label, 0, 0, is_color, datum);
}
inline bool ReadImageToDatum(const string& filename, const int label, Datum* datum) {
  return ReadImageToDatum(filename, label, 0, 0, true, datum);
}
inline bool ReadImageToDatum(const string& filename, const int label, const string& encoding,
                             Datum* datum) {
  return ReadImageToDatum(filename, label, 0, 0, true, encoding, datum);
}

// Returns false if the datum is not encoded.
bool DecodeDatumNative(Datum* datum);
bool DecodeDatum(Datum* datum, bool is_color);

#ifdef USE_OPENCV
// Returns the pixels of a datum that is not encoded.
inline cv::Mat DatumToCVMat(const Datum& datum) {
  CHECK(!datum.encoded());
  const int channels = datum.channels(), height = datum.height(), width = datum.width();
  CHECK_EQ(datum.data().size(), static_cast<size_t>(channels) * height * width);
  cv::Mat image(height, width, CV_8UC(channels));
  for (int h = 0; h < height; ++h) {
    uchar* const row = image.ptr<uchar>(h);
    for (int w = 0; w < width; ++w) {
      for (int c = 0; c < channels; ++c) {
        row[w * channels + c] = static_cast<uchar>(datum.data()[(c * height + h) * width + w]);
      }
    }
  }
  return image;
}

inline void CVMatToDatum(const cv::Mat& image, Datum* datum) {
  CHECK_EQ(image.depth(), CV_8U) << "the image must have bytes";
  const int channels = image.channels();
  datum->set_channels(channels);
  datum->set_height(image.rows);
  datum->set_width(image.cols);
  datum->clear_float_data();
  datum->set_encoded(false);
  string* const data = datum->mutable_data();
  data->resize(static_cast<size_t>(channels) * image.rows * image.cols);
  for (int h = 0; h < image.rows; ++h) {
    const uchar* const row = image.ptr<uchar>(h);
    for (int w = 0; w < image.cols; ++w) {
      for (int c = 0; c < channels; ++c) {
        (*data)[(c * image.rows + h) * image.cols + w] = static_cast<char>(row[w * channels + c]);
      }
    }
  }
}

// Returns an empty image, with the error logged, if the file is not an image.
inline cv::Mat ReadImageToCVMat(const string& filename, const int height, const int width,
                                const bool is_color) {
  Datum datum;
  if (!ReadImageToDatum(filename, -1, height, width, is_color, &datum)) return cv::Mat();
  return DatumToCVMat(datum);
}
inline cv::Mat ReadImageToCVMat(const string& filename, const int height, const int width) {
  return ReadImageToCVMat(filename, height, width, true);
}
inline cv::Mat ReadImageToCVMat(const string& filename, const bool is_color) {
  return ReadImageToCVMat(filename, 0, 0, is_color);
}
inline cv::Mat ReadImageToCVMat(const string& filename) {
  return ReadImageToCVMat(filename, 0, 0, true);
}

inline cv::Mat DecodeDatumToCVMatNative(const Datum& datum) {
  Datum decoded = datum;
  CHECK(DecodeDatumNative(&decoded)) << "Datum not encoded";
  return DatumToCVMat(decoded);
}
inline cv::Mat DecodeDatumToCVMat(const Datum& datum, bool is_color) {
  Datum decoded = datum;
  CHECK(DecodeDatum(&decoded, is_color)) << "Datum not encoded";
  return DatumToCVMat(decoded);
}
#endif

CAFFE_BVLC_END
