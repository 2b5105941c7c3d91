// Computes the mean image of a database.
#include <cstdint>

#include "caffe/data/parsers/datum_view.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/readers/record_reader.hpp"
#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tools/interruption.hpp"
#include "tools/tool_main.hpp"

DEFINE_string(backend, "lmdb", "Kind of the database: lmdb or leveldb");

namespace caffe::tools {
namespace {

// Sums of all images, in planes.
class MeanImage {
 public:
  void Add(const data::ImageView& image) {
    const data::ImageExtents& extents = image.extents;
    if (count_ == 0) {
      extents_ = extents;
      sums_.resize(extents.count());
    }
    Require(extents == extents_, "an image of ", extents, ", but the first one has ", extents_,
            "; convert the set again with --resize_height and --resize_width");
    const size_t plane = sums_.size() / extents.channels;
    for (int channel = 0; channel < extents.channels; ++channel) {
      double* sums = sums_.data() + channel * plane;
      if (image.floats != nullptr) {
        AddPlane(image.floats + channel * plane, 1, plane, sums);
      } else if (image.interleaved) {
        AddPlane(image.bytes + channel, extents.channels, plane, sums);
      } else {
        AddPlane(image.bytes + channel * plane, 1, plane, sums);
      }
    }
    ++count_;
  }

  // The form that every Caffe reads.
  BlobProto ToProto() const {
    BlobProto blob;
    blob.set_num(1);
    blob.set_channels(extents_.channels);
    blob.set_height(extents_.height);
    blob.set_width(extents_.width);
    for (const double sum : sums_) blob.add_data(static_cast<float>(sum / count_));
    return blob;
  }

  const data::ImageExtents& extents() const { return extents_; }
  double ChannelMean(int channel) const {
    const size_t plane = sums_.size() / extents_.channels;
    double total = 0;
    for (size_t i = 0; i < plane; ++i) total += sums_[channel * plane + i];
    return total / (static_cast<double>(plane) * count_);
  }

 private:
  template <typename T>
  static void AddPlane(const T* values, size_t step, size_t count, double* sums) {
    for (size_t i = 0; i < count; ++i) sums[i] += static_cast<double>(values[i * step]);
  }

  data::ImageExtents extents_;
  std::vector<double> sums_;
  int64_t count_ = 0;
};

void ComputeMean(const std::string& database, const std::string& output) {
  const auto reader = data::OpenRecordReader(data::ParseBackend(FLAGS_backend), database);
  data::ImageDecoder decoder(data::ColorMode::kAsStored);
  std::vector<float> float_storage;
  MeanImage mean;
  int64_t count = 0;
  data::Record record;
  LOG(INFO) << "Starting iteration";
  for (bool found = reader->First(&record); found; found = reader->Next(&record)) {
    CheckInterrupted();
    WithContext(StrCat(database, ": record ", count, " ('", data::PrintableKey(record.key), "')"),
                [&] {
                  const data::DatumView datum = data::ParseDatum(record.value, &float_storage);
                  mean.Add(datum.encoded ? decoder.Decode(datum.data) : data::PixelsOf(datum));
                });
    if (++count % 1000 == 0) LOG(INFO) << "Processed " << count << " files.";
  }
  if (count == 0) throw IoError(database + ": the database has no records; fill it first");
  if (count % 1000 != 0) LOG(INFO) << "Processed " << count << " files.";
  if (!output.empty()) {
    LOG(INFO) << "Write to " << output;
    WriteBinaryProto(output, mean.ToProto());
  }
  LOG(INFO) << "Number of channels: " << mean.extents().channels;
  for (int channel = 0; channel < mean.extents().channels; ++channel) {
    LOG(INFO) << "mean_value channel [" << channel << "]: " << mean.ChannelMean(channel);
  }
}

}  // namespace
}  // namespace caffe::tools

int main(int argc, char** argv) {
  return caffe::tools::RunTool(
      argc, argv,
      "Computes the mean image of a database.\n"
      "Usage: compute_image_mean [FLAGS] INPUT_DB [OUTPUT_FILE]\n"
      "OUTPUT_FILE is for transform_param.mean_file; the logged values for mean_value.",
      1, 2, [](const std::vector<std::string>& arguments) {
        caffe::tools::RunInterruptible([&] {
          caffe::tools::ComputeMean(arguments[0], arguments.size() > 1 ? arguments[1] : "");
        });
      });
}
