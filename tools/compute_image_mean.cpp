// Computes the mean image of a database.
#include <cstdint>

#include "caffe/core/printable.hpp"
#include "caffe/data/parsers/datum_view.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/readers/record_reader.hpp"
#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "tools/interruption.hpp"
#include "tools/mean_image.hpp"
#include "tools/tool_main.hpp"

DEFINE_string(backend, "lmdb", "Kind of the database: lmdb or leveldb");

namespace caffe::tools {
namespace {

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
    WithContext(StrCat(database, ": record ", count, " ('", Printable(record.key), "')"), [&] {
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
