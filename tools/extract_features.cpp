// Runs a net over its data and stores blobs as databases of float Datums.
#include <iomanip>
#include <memory>
#include <sstream>

#include "caffe/caffe.hpp"
#include "caffe/core/split.hpp"
#include "caffe/data/readers/record_reader.hpp"
#include "tools/interruption.hpp"
#include "tools/tool_main.hpp"

namespace caffe::tools {
namespace {

// `what` names the argument in errors.
int ParseNumber(const char* what, const std::string& text, int least) {
  std::istringstream stream(text);
  int number = 0;
  Require(static_cast<bool>(stream >> number) && stream.eof() && number >= least, what, " is '",
          text, "'; give a whole number from ", least, " on");
  return number;
}

void SetDevice(const std::string& mode, const std::string& gpu) {
  Require(mode == "CPU" || mode == "GPU", "the device is '", mode, "'; give CPU or GPU");
  Caffe::SetDevice(ParseNumber("the number of the GPU", gpu, 0));
  Caffe::set_mode(mode == "GPU" ? Caffe::GPU : Caffe::CPU);
}

// A blob and the database for its items.
struct Output {
  std::string blob, database;
  std::unique_ptr<data::RecordWriter> writer;
  int64_t items = 0;

  // Adds one Datum per item of the batch.
  void Add(const Blob& values) {
    const Shape& shape = values.shape();
    const int64_t batch = shape.LegacyExtent(0);
    const int64_t size = batch == 0 ? 0 : values.count() / batch;
    for (int64_t item = 0; item < batch; ++item) {
      Datum datum;
      datum.set_channels(static_cast<int>(shape.LegacyExtent(1)));
      datum.set_height(static_cast<int>(shape.LegacyExtent(2)));
      datum.set_width(static_cast<int>(shape.LegacyExtent(3)));
      const float* first = values.cpu_data() + item * size;
      datum.mutable_float_data()->Add(first, first + size);
      std::ostringstream key;
      key << std::setw(10) << std::setfill('0') << items++;
      writer->Put(key.str(), datum.SerializeAsString());
    }
    if (items % 1000 < batch) {
      LOG(ERROR) << "Extracted features of " << items << " query images for feature blob " << blob;
    }
  }
};

void ExtractFeatures(const std::vector<std::string>& arguments) {
  const std::string &weights = arguments[0], &model = arguments[1];
  const std::vector<std::string> blobs = SplitByComma(arguments[2]),
                                 databases = SplitByComma(arguments[3]);
  Require(blobs.size() == databases.size(), blobs.size(), " blobs but ", databases.size(),
          " databases are named; give as many of one as of the other");
  const int batches = ParseNumber("the number of batches", arguments[4], 1);
  const DataParameter::DB backend = data::ParseBackend(arguments[5]);
  SetDevice(arguments.size() > 6 ? arguments[6] : "CPU", arguments.size() > 7 ? arguments[7] : "0");
  Net net(model, TEST, /*level=*/0, /*stages=*/{}, {.with_backward = false});
  WarnOfInitialWeights(weights, net.CopyTrainedLayersFrom(weights), net);
  std::vector<Output> outputs;
  for (size_t i = 0; i < blobs.size(); ++i) {
    net.blob_by_name(blobs[i]);  // throws for an unknown blob, before anything is written
    outputs.push_back({blobs[i], databases[i], nullptr});
  }
  for (Output& output : outputs) {
    output.writer = std::make_unique<InterruptibleWriter>(backend, output.database);
  }
  LOG(INFO) << "Extracting features";
  for (int batch = 0; batch < batches; ++batch) {
    net.Forward();
    for (Output& output : outputs) output.Add(*net.blob_by_name(output.blob));
  }
  for (Output& output : outputs) {
    output.writer->Finish();
    LOG(ERROR) << "Extracted features of " << output.items << " query images for feature blob "
               << output.blob;
  }
  LOG(ERROR) << "Successfully extracted the features!";
}

}  // namespace
}  // namespace caffe::tools

int main(int argc, char** argv) {
  return caffe::tools::RunTool(
      argc, argv,
      "Runs a net in phase TEST and stores blobs as databases of float Datums.\n"
      "Usage: extract_features WEIGHTS MODEL BLOB1[,BLOB2...] DB1[,DB2...] BATCHES lmdb|leveldb "
      "[CPU|GPU] [DEVICE_ID]",
      6, 8, [](const std::vector<std::string>& arguments) {
        caffe::tools::RunInterruptible([&] { caffe::tools::ExtractFeatures(arguments); });
      });
}
