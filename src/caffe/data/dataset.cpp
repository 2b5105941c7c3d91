#include "caffe/dataset.hpp"

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "caffe/data/parsers/datum_parser.hpp"
#include "caffe/data/readers/lmdb.hpp"
#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"

namespace caffe {
namespace {

void RequireLmdb(const std::string& backend) {
  if (backend == "lmdb") return;
  throw Unsupported("backend '" + backend + "' is not available in this build; use lmdb");
}

std::string Extension(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  if (!extension.empty()) extension.erase(0, 1);
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == "jpeg" ? "jpg" : extension;
}

}  // namespace

struct DatasetWriter::Impl {
  data::LmdbWriter writer;
  std::string bytes;
};

DatasetWriter::DatasetWriter(const std::string& path, const std::string& backend) {
  RequireLmdb(backend);
  impl_.reset(new Impl{data::LmdbWriter(path), {}});
}

DatasetWriter::~DatasetWriter() = default;

void DatasetWriter::Put(const std::string& key, const Datum& datum) {
  datum.SerializeToString(&impl_->bytes);
  impl_->writer.Put(key, impl_->bytes);
}

void DatasetWriter::Close() { impl_->writer.Close(); }

struct DatasetReader::Impl {
  data::LmdbReader reader;
  data::DatumParser parser;
};

DatasetReader::DatasetReader(const std::string& path, const std::string& backend) {
  RequireLmdb(backend);
  impl_.reset(new Impl{data::LmdbReader(path), data::DatumParser()});
}

DatasetReader::~DatasetReader() = default;
uint64_t DatasetReader::size() const { return impl_->reader.size(); }

void DatasetReader::Next(Datum* datum) {
  const data::RecordView record = impl_->reader.Next();
  const data::DatumView view = WithContext(StrCat(impl_->reader.path(), ": record '", record.key, "'"),
                                           [&] { return impl_->parser.Parse(record.value); });
  datum->Clear();
  datum->set_channels(view.channels);
  datum->set_height(view.height);
  datum->set_width(view.width);
  datum->set_label(view.label);
  const int64_t pixels = int64_t{view.height} * view.width;
  if (view.floats != nullptr) {
    const auto* floats = reinterpret_cast<const float*>(view.floats);
    datum->mutable_float_data()->Add(floats, floats + pixels * view.channels);
    return;
  }
  std::string& planes = *datum->mutable_data();
  planes.resize(static_cast<size_t>(pixels * view.channels));
  for (int c = 0; c < view.channels; ++c) {
    for (int64_t p = 0; p < pixels; ++p) {
      planes[c * pixels + p] =
          static_cast<char>(view.pixels[view.is_interleaved ? p * view.channels + c : c * pixels + p]);
    }
  }
}

IdxFile ReadIdx(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as they are
  if (file == nullptr) throw IoError(path + ": cannot open");
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> closer(file, gzclose);
  const auto read = [&](void* to, size_t bytes) {
    auto* at = static_cast<char*>(to);
    for (size_t left = bytes; left > 0;) {
      const int got = gzread(file, at, static_cast<unsigned>(std::min<size_t>(left, 1u << 30)));
      if (got <= 0) throw IoError(StrCat(path, ": ends ", left, " bytes too early; download it again"));
      at += got;
      left -= static_cast<size_t>(got);
    }
  };
  uint8_t magic[4];
  read(magic, sizeof(magic));
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != 0x08 || magic[3] == 0 || magic[3] > 4) {
    throw IoError(path + ": not an idx file of bytes (its first four bytes are wrong)");
  }
  IdxFile idx;
  int64_t count = 1;
  for (int axis = 0; axis < magic[3]; ++axis) {
    uint8_t extent[4];
    read(extent, sizeof(extent));
    idx.dims.push_back((int64_t{extent[0]} << 24) | (extent[1] << 16) | (extent[2] << 8) | extent[3]);
    count *= idx.dims.back();
    if (count > (int64_t{1} << 32)) throw IoError(path + ": says that it has more than 4 GiB of values");
  }
  idx.values.resize(static_cast<size_t>(count));
  read(idx.values.data(), idx.values.size());
  return idx;
}

void ReadImageToDatum(const std::string& path, int label, const ImageOptions& options, Datum* datum) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError(path + ": cannot open");
  datum->Clear();
  datum->set_label(label);
  const bool must_resize = options.resize_height > 0 && options.resize_width > 0;
  const std::string type = options.encode_type == "jpeg" ? "jpg" : options.encode_type;
  if (!type.empty() && !must_resize && options.is_color && Extension(path) == type) {
    datum->mutable_data()->assign(std::istreambuf_iterator<char>(file), {});
    datum->set_encoded(true);
    return;
  }
  cv::Mat image = cv::imread(path, options.is_color ? cv::IMREAD_COLOR : cv::IMREAD_GRAYSCALE);
  if (image.empty()) throw IoError(path + ": not an image that can be decoded");
  if (must_resize) cv::resize(image, image, cv::Size(options.resize_width, options.resize_height));
  if (!type.empty()) {
    std::vector<uint8_t> bytes;
    if (!cv::imencode("." + type, image, bytes)) throw InvalidArgument("encode_type '" + type + "' is unknown");
    datum->set_data(bytes.data(), bytes.size());
    datum->set_encoded(true);
    return;
  }
  datum->set_channels(image.channels());
  datum->set_height(image.rows);
  datum->set_width(image.cols);
  std::string& planes = *datum->mutable_data();
  const size_t pixels = image.total();
  const int channels = image.channels();
  planes.resize(pixels * channels);
  for (int c = 0; c < channels; ++c) {
    for (size_t p = 0; p < pixels; ++p) planes[c * pixels + p] = static_cast<char>(image.data[p * channels + c]);
  }
}

void WriteMeanImage(const std::string& path, int channels, int height, int width,
                    const std::vector<double>& sums, uint64_t count) {
  BlobProto mean;
  mean.set_num(1);
  mean.set_channels(channels);
  mean.set_height(height);
  mean.set_width(width);
  for (const double sum : sums) mean.add_data(static_cast<float>(sum / static_cast<double>(count)));
  WriteBinaryProto(path, mean);
}

}  // namespace caffe
