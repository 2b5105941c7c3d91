#include "caffe/compat/caffe/util/io.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/text_format.hpp"

namespace caffe::bvlc {
namespace {

// Runs `fn`; returns false, with the error logged, if it throws `Caught`.
template <typename Caught, typename Fn>
bool Succeeds(Fn fn) {
  try {
    fn();
    return true;
  } catch (const Caught& error) {
    LOG(ERROR) << error.what();
    return false;
  }
}

// Stores the pixels as planes, as required in a datum.
void SetPixels(const data::ImageView& image, Datum* datum) {
  const auto [channels, height, width] = image.extents;
  datum->set_channels(channels);
  datum->set_height(height);
  datum->set_width(width);
  datum->clear_float_data();
  datum->set_encoded(false);
  string* const planes = datum->mutable_data();
  planes->resize(static_cast<size_t>(image.extents.count()));
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < height * width; ++i)
      (*planes)[c * height * width + i] = static_cast<char>(image.bytes[i * channels + c]);
  }
}

bool Decode(Datum* datum, data::ColorMode mode) {
  if (!datum->encoded()) return false;
  const string file = datum->data();
  SetPixels(data::DecodeImage(file, mode).view(), datum);
  return true;
}

data::ColorMode ModeOf(bool is_color) {
  return is_color ? data::ColorMode::kColor : data::ColorMode::kGray;
}

}  // namespace

void MakeTempDir(string* temp_dirname) {
  string name = (std::filesystem::temp_directory_path() / "caffe_test.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw IoError(StrCat(name, ": cannot be created: ", std::strerror(errno)));
  *temp_dirname = name;
}

void MakeTempFilename(string* temp_filename) {
  string folder;
  MakeTempDir(&folder);
  *temp_filename = folder + "/file";
}

bool ReadProtoFromTextFile(const char* filename, Message* proto) {
  return Succeeds<InvalidArgument>([&] { ReadTextProto(filename, proto); });
}
void ReadProtoFromTextFileOrDie(const char* filename, Message* proto) {
  ReadTextProto(filename, proto);
}
bool ReadProtoFromBinaryFile(const char* filename, Message* proto) {
  ReadFile(filename);  // throws if there is no such file
  return Succeeds<IoError>([&] { ReadBinaryProto(filename, proto); });
}
void ReadProtoFromBinaryFileOrDie(const char* filename, Message* proto) {
  ReadBinaryProto(filename, proto);
}
void WriteProtoToTextFile(const Message& proto, const char* filename) {
  WriteTextProto(filename, proto);
}
void WriteProtoToBinaryFile(const Message& proto, const char* filename) {
  WriteBinaryProto(filename, proto);
}

bool ReadFileToDatum(const string& filename, const int label, Datum* datum) {
  return Succeeds<IoError>([&] {
    datum->set_data(ReadFile(filename));
    datum->set_label(label);
    datum->set_encoded(true);
  });
}

bool ReadImageToDatum(const string& filename, const int label, const int height, const int width,
                      const bool is_color, const string& encoding, Datum* datum) {
  return Succeeds<Error>([&] {
    const bool is_resized = height > 0 && width > 0;
    const string file = ReadFile(filename);
    datum->set_label(label);
    if (!encoding.empty() && !is_resized && data::ImageFormatOf(file) == encoding) {
      datum->set_data(file);
      datum->set_encoded(true);
      return;
    }
    data::Image image = data::DecodeImage(file, ModeOf(is_color));
    if (is_resized) image = data::ResizeImage(image.view(), height, width);
    if (encoding.empty()) return SetPixels(image.view(), datum);
    datum->set_data(data::EncodeImage(image, encoding));
    datum->set_encoded(true);
  });
}

bool DecodeDatumNative(Datum* datum) {
  return Decode(datum, data::ColorMode::kAsStored);
}
bool DecodeDatum(Datum* datum, bool is_color) {
  return Decode(datum, ModeOf(is_color));
}

}  // namespace caffe::bvlc
