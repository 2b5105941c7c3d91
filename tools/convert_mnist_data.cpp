// Converts MNIST's two IDX files, gzip-compressed or not, to a database of Datum records.
#include <zlib.h>

#include <array>
#include <cinttypes>
#include <filesystem>
#include <memory>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tools/interruption.hpp"
#include "tools/tool_main.hpp"

DEFINE_string(backend, "lmdb", "Database to write: lmdb or leveldb");

namespace caffe::tools {
namespace {

constexpr uint32_t kImageMagic = 2051;
constexpr uint32_t kLabelMagic = 2049;

// Reads a file of big-endian integers and bytes. zlib reads uncompressed files unchanged.
class IdxFile {
 public:
  explicit IdxFile(const std::string& name) : path_(name) {
    if (!std::filesystem::exists(path_) && std::filesystem::exists(path_ + ".gz")) path_ += ".gz";
    RequireNoPipe(path_);
    file_.reset(gzopen(path_.c_str(), "rb"));
    if (!file_) throw IoError(StrCat(path_, ": cannot open; does the file exist?"));
  }

  const std::string& path() const { return path_; }

  void Read(void* bytes, size_t count) {
    const int got = gzread(file_.get(), bytes, static_cast<unsigned>(count));
    if (got < 0) {
      int code;
      throw IoError(StrCat(path_, ": cannot read: ", gzerror(file_.get(), &code)));
    }
    if (static_cast<size_t>(got) != count) {
      throw IoError(StrCat(path_, ": ends after ", read_ + static_cast<uint64_t>(got),
                           " bytes, but at least ", read_ + count,
                           " were expected; download it again"));
    }
    read_ += count;
  }

  uint32_t ReadInteger() {
    std::array<unsigned char, 4> bytes;
    Read(bytes.data(), bytes.size());
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
  }

  void ExpectMagic(uint32_t wanted, const char* what) {
    const uint32_t magic = ReadInteger();
    Require(magic == wanted, path_, ": not an IDX file of ", what, " (magic number ", magic,
            ", expected ", wanted, "); is the order IMAGES LABELS right?");
  }

 private:
  struct Closer {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };

  std::string path_;
  std::unique_ptr<gzFile_s, Closer> file_;
  uint64_t read_ = 0;
};

void Convert(const std::string& image_path, const std::string& label_path,
             const std::string& database) {
  IdxFile images(image_path);
  IdxFile labels(label_path);
  images.ExpectMagic(kImageMagic, "images");
  labels.ExpectMagic(kLabelMagic, "labels");
  const uint32_t count = images.ReadInteger();
  const uint32_t label_count = labels.ReadInteger();
  Require(count == label_count, images.path(), ": holds ", count, " images, but ", labels.path(),
          " holds ", label_count, " labels; the two files have to belong together");
  const uint32_t height = images.ReadInteger();
  const uint32_t width = images.ReadInteger();
  Require(height > 0 && width > 0 && height <= 65535 && width <= 65535, images.path(),
          ": images of ", height, "x", width, " pixels; the file is damaged");

  InterruptibleWriter writer(data::ParseBackend(FLAGS_backend), database);
  LOG(INFO) << "A total of " << count << " items.";
  LOG(INFO) << "Rows: " << height << " Cols: " << width;
  Datum datum;
  datum.set_channels(1);
  datum.set_height(static_cast<int>(height));
  datum.set_width(static_cast<int>(width));
  datum.mutable_data()->resize(size_t{height} * width);
  std::string value;
  for (uint32_t item = 0; item < count; ++item) {
    unsigned char label;
    images.Read(datum.mutable_data()->data(), datum.data().size());
    labels.Read(&label, 1);
    datum.set_label(label);
    datum.SerializeToString(&value);
    char key[16];
    std::snprintf(key, sizeof key, "%08" PRIu32, item);
    writer.Put(key, value);
    if ((item + 1) % 1000 == 0) LOG(INFO) << "Processed " << item + 1 << " files.";
  }
  writer.Finish();
  LOG(INFO) << "Wrote " << count << " records to " << database;
}

}  // namespace
}  // namespace caffe::tools

int main(int argc, char** argv) {
  return caffe::tools::RunTool(
      argc, argv,
      "Converts MNIST to a database of Datum records.\n"
      "Usage: convert_mnist_data [FLAGS] IMAGE_FILE LABEL_FILE DB\n"
      "IMAGE_FILE and LABEL_FILE are IDX files as published, .gz or unpacked.",
      3, 3, [](const std::vector<std::string>& arguments) {
        caffe::tools::RunInterruptible(
            [&] { caffe::tools::Convert(arguments[0], arguments[1], arguments[2]); });
      });
}
