// convert_cifar_data INPUT_FOLDER OUTPUT_FOLDER DB_TYPE: CIFAR-10's binary batches to databases.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdio>
#include <fstream>

#include "caffe/dataset.hpp"
#include "caffe/error.hpp"

namespace {

constexpr int kSize = 32, kImageBytes = 3 * kSize * kSize, kImagesPerBatch = 10000;

// Appends the 10,000 images of a batch file; keys count on from `first`.
void AppendBatch(const std::string& file, int first, caffe::DatasetWriter* writer) {
  std::ifstream batch(file, std::ios::binary);
  if (!batch) throw caffe::IoError(file + ": cannot open; unpack cifar-10-binary.tar.gz there");
  caffe::Datum datum;
  datum.set_channels(3);
  datum.set_height(kSize);
  datum.set_width(kSize);
  std::string record(1 + kImageBytes, '\0');
  for (int i = 0; i < kImagesPerBatch; ++i) {
    if (!batch.read(record.data(), static_cast<std::streamsize>(record.size()))) {
      throw caffe::IoError(caffe::StrCat(file, ": ends after ", i, " of ", kImagesPerBatch, " images"));
    }
    datum.set_label(static_cast<uint8_t>(record[0]));
    datum.set_data(record.data() + 1, kImageBytes);
    char key[24];
    std::snprintf(key, sizeof(key), "%05d", first + i);
    writer->Put(key, datum);
  }
}

void Convert(const std::string& input, const std::string& output, const std::string& backend) {
  caffe::DatasetWriter train(output + "/cifar10_train_" + backend, backend);
  LOG(INFO) << "Writing Training data";
  for (int i = 0; i < 5; ++i) {
    LOG(INFO) << "Training Batch " << i + 1;
    AppendBatch(caffe::StrCat(input, "/data_batch_", i + 1, ".bin"), i * kImagesPerBatch, &train);
  }
  train.Close();
  LOG(INFO) << "Writing Testing data";
  caffe::DatasetWriter test(output + "/cifar10_test_" + backend, backend);
  AppendBatch(input + "/test_batch.bin", 0, &test);
  test.Close();
  LOG(INFO) << "Processed " << 6 * kImagesPerBatch << " files.";
}

}  // namespace

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  gflags::SetUsageMessage(
      "Converts the CIFAR-10 binary batches to databases cifar10_train_<type> and cifar10_test_<type>.\n"
      "usage: convert_cifar_data INPUT_FOLDER OUTPUT_FOLDER DB_TYPE");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  google::InitGoogleLogging(argv[0]);
  if (argc != 4) {
    gflags::ShowUsageWithFlagsRestrict(argv[0], "convert_cifar_data");
    return 1;
  }
  try {
    Convert(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    LOG(ERROR) << "convert_cifar_data: " << error.what();
    return 1;
  }
  return 0;
}
