// compute_image_mean DB [OUTPUT]: the mean of all images of a database.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include "caffe/dataset.hpp"
#include "caffe/error.hpp"

DEFINE_string(backend, "lmdb", "The backend that the images are stored in.");

namespace {

void Compute(const std::string& db, const std::string& output) {
  caffe::DatasetReader reader(db, FLAGS_backend);
  caffe::Datum datum, first;
  std::vector<double> sums;
  LOG(INFO) << "Starting iteration";
  for (uint64_t i = 0; i < reader.size(); ++i) {
    reader.Next(&datum);
    const size_t count = static_cast<size_t>(datum.channels()) * datum.height() * datum.width();
    if (i == 0) {
      first = datum;
      sums.assign(count, 0);
    }
    caffe::Require(datum.channels() == first.channels() && datum.height() == first.height() &&
                       datum.width() == first.width(),
                   db, ": image ", i, " has ", datum.channels(), "x", datum.height(), "x", datum.width(),
                   ", the first ", first.channels(), "x", first.height(), "x", first.width(),
                   "; a mean needs images of one size");
    const bool has_pixels = !datum.data().empty();
    for (size_t k = 0; k < count; ++k) {
      sums[k] += has_pixels ? static_cast<uint8_t>(datum.data()[k]) : datum.float_data(static_cast<int>(k));
    }
    if ((i + 1) % 10000 == 0) LOG(INFO) << "Processed " << i + 1 << " files.";
  }
  LOG(INFO) << "Processed " << reader.size() << " files.";
  if (!output.empty()) {
    LOG(INFO) << "Write to " << output;
    caffe::WriteMeanImage(output, first.channels(), first.height(), first.width(), sums, reader.size());
  }
  LOG(INFO) << "Number of channels: " << first.channels();
  const size_t pixels = sums.size() / first.channels();
  for (int c = 0; c < first.channels(); ++c) {
    double sum = 0;
    for (size_t p = 0; p < pixels; ++p) sum += sums[c * pixels + p];
    LOG(INFO) << "mean_value channel [" << c << "]: "
              << sum / static_cast<double>(pixels) / static_cast<double>(reader.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  gflags::SetUsageMessage(
      "Computes the mean image of a database.\n"
      "usage: compute_image_mean [flags] INPUT_DB [OUTPUT_FILE]");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  google::InitGoogleLogging(argv[0]);
  if (argc < 2 || argc > 3) {
    gflags::ShowUsageWithFlagsRestrict(argv[0], "compute_image_mean");
    return 1;
  }
  try {
    Compute(argv[1], argc == 3 ? argv[2] : "");
  } catch (const std::exception& error) {
    LOG(ERROR) << "compute_image_mean: " << error.what();
    return 1;
  }
  return 0;
}
