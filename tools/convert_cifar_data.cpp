// Converts CIFAR-10's binary batches to a training database and a test database.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tools/interruption.hpp"
#include "tools/tool_main.hpp"

namespace caffe::tools {
namespace {

constexpr int kSide = 32;
constexpr int kPixels = 3 * kSide * kSide;
constexpr int kTrainBatches = 5;

// Appends the records of one file to `writer`. Each has a label byte and the planes of an image.
int ConvertBatch(const std::filesystem::path& path, int first_index, data::RecordWriter* writer) {
  RequireNoPipe(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw IoError(StrCat(path.string(),
                         ": cannot open; INPUT_FOLDER has to hold CIFAR-10's binary "
                         "version (data_batch_1.bin to data_batch_5.bin and test_batch.bin)"));
  }
  Datum datum;
  datum.set_channels(3);
  datum.set_height(kSide);
  datum.set_width(kSide);
  std::array<char, 1 + kPixels> record;
  int count = 0;
  while (file.read(record.data(), record.size())) {
    datum.set_label(static_cast<unsigned char>(record[0]));
    datum.set_data(record.data() + 1, kPixels);
    std::array<char, 16> key;
    std::snprintf(key.data(), key.size(), "%05d", first_index + count);
    writer->Put(key.data(), datum.SerializeAsString());
    ++count;
  }
  if (count == 0 || file.gcount() != 0) {
    throw IoError(StrCat(path.string(), ": ends within record ", count, " (", file.gcount(), " of ",
                         record.size(), " bytes); download it again"));
  }
  return count;
}

void Convert(const std::filesystem::path& input, const std::filesystem::path& output,
             const std::string& type) {
  const DataParameter::DB backend = data::ParseBackend(type);
  const std::string train_path = (output / ("cifar10_train_" + type)).string();
  const std::string test_path = (output / ("cifar10_test_" + type)).string();
  InterruptibleWriter train(backend, train_path), test(backend, test_path);
  LOG(INFO) << "Writing Training data";
  int train_count = 0;
  for (int batch = 1; batch <= kTrainBatches; ++batch) {
    LOG(INFO) << "Training Batch " << batch;
    train_count += ConvertBatch(input / StrCat("data_batch_", batch, ".bin"), train_count, &train);
  }
  LOG(INFO) << "Writing Testing data";
  const int test_count = ConvertBatch(input / "test_batch.bin", 0, &test);
  train.Finish();
  LOG(INFO) << "Wrote " << train_count << " records to " << train_path;
  test.Finish();
  LOG(INFO) << "Wrote " << test_count << " records to " << test_path;
}

}  // namespace
}  // namespace caffe::tools

int main(int argc, char** argv) {
  return caffe::tools::RunTool(
      argc, argv,
      "Converts CIFAR-10's binary version to databases cifar10_train_DBTYPE and "
      "cifar10_test_DBTYPE.\n"
      "Usage: convert_cifar_data INPUT_FOLDER OUTPUT_FOLDER DBTYPE\n"
      "DBTYPE is lmdb or leveldb.",
      3, 3, [](const std::vector<std::string>& arguments) {
        caffe::tools::RunInterruptible(
            [&] { caffe::tools::Convert(arguments[0], arguments[1], arguments[2]); });
      });
}
