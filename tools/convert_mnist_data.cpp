// convert_mnist_data IMAGES LABELS DB: idx files (plain or .gz) to a database.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdio>

#include "caffe/dataset.hpp"
#include "caffe/error.hpp"

DEFINE_string(backend, "lmdb", "The backend for storing the result.");

namespace {

void Convert(const std::string& image_file, const std::string& label_file, const std::string& db) {
  const caffe::IdxFile images = caffe::ReadIdx(image_file), labels = caffe::ReadIdx(label_file);
  if (images.dims.size() != 3) throw caffe::IoError(image_file + ": holds no images (it has not 3 axes)");
  if (labels.dims.size() != 1) throw caffe::IoError(label_file + ": holds no labels (it has not 1 axis)");
  caffe::Require(images.dims[0] == labels.dims[0], image_file, " has ", images.dims[0], " images, ", label_file,
                 " has ", labels.dims[0], " labels; they belong to different sets");
  const int64_t count = images.dims[0], pixels = images.dims[1] * images.dims[2];
  caffe::DatasetWriter writer(db, FLAGS_backend);
  LOG(INFO) << "A total of " << count << " items.";
  LOG(INFO) << "Rows: " << images.dims[1] << " Cols: " << images.dims[2];
  caffe::Datum datum;
  datum.set_channels(1);
  datum.set_height(static_cast<int>(images.dims[1]));
  datum.set_width(static_cast<int>(images.dims[2]));
  for (int64_t i = 0; i < count; ++i) {
    datum.set_data(images.values.data() + i * pixels, static_cast<size_t>(pixels));
    datum.set_label(labels.values[i]);
    char key[24];
    std::snprintf(key, sizeof(key), "%08lld", static_cast<long long>(i));
    writer.Put(key, datum);
    if ((i + 1) % 10000 == 0) LOG(INFO) << "Processed " << i + 1 << " files.";
  }
  writer.Close();
  LOG(INFO) << "Processed " << count << " files.";
}

}  // namespace

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  gflags::SetUsageMessage(
      "Converts idx files, as MNIST's, to a database.\n"
      "usage: convert_mnist_data [flags] IMAGE_FILE LABEL_FILE DB");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  google::InitGoogleLogging(argv[0]);
  if (argc != 4) {
    gflags::ShowUsageWithFlagsRestrict(argv[0], "convert_mnist_data");
    return 1;
  }
  try {
    Convert(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    LOG(ERROR) << "convert_mnist_data: " << error.what();
    return 1;
  }
  return 0;
}
