// Classifies an image with a net: an example of an application that uses the library.
//
//   classification DEPLOY_PROTOTXT WEIGHTS MEAN LABELS IMAGE
//
// MEAN is a .binaryproto, whose average per channel is used, or values such as 104,117,123. LABELS
// has one line per class. Prints the five most likely classes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <numeric>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "caffe/caffe.hpp"

namespace {

struct Prediction {
  std::string label;
  float confidence;
};

class Classifier {
 public:
  Classifier(const std::string& model, const std::string& weights, const std::string& mean,
             const std::string& labels);

  // The `count` most likely classes in descending order. The image is B, G, R or gray.
  std::vector<Prediction> Classify(const cv::Mat& image, size_t count = 5);

 private:
  void Preprocess(const cv::Mat& image, float* planes) const;

  caffe::Net net_;
  int channels_ = 0;
  cv::Size size_;
  cv::Scalar mean_;
  std::vector<std::string> labels_;
};

std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream file(path);
  caffe::Require(file.good(), path, ": cannot be opened");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// One value per channel.
std::vector<float> ReadMean(const std::string& text) {
  std::vector<float> values;
  if (!text.ends_with(".binaryproto")) {
    std::istringstream stream(text);
    for (std::string value; std::getline(stream, value, ',');) values.push_back(std::stof(value));
    return values;
  }
  caffe::BlobProto image;
  std::ifstream file(text, std::ios::binary);
  caffe::Require(file.good() && image.ParseFromIstream(&file) && image.channels() > 0, text,
                 ": is not a mean file");
  const int pixels = image.data_size() / image.channels();
  for (auto first = image.data().begin(); first != image.data().end(); first += pixels) {
    values.push_back(std::accumulate(first, first + pixels, 0.0f) / pixels);
  }
  return values;
}

Classifier::Classifier(const std::string& model, const std::string& weights,
                       const std::string& mean, const std::string& labels)
    // Only inputs and outputs are read, so the blobs in between may share memory.
    : net_(model, caffe::TEST, 0, {}, {.keep_all = false, .with_backward = false}),
      labels_(ReadLines(labels)) {
  net_.CopyTrainedLayersFrom(weights);
  caffe::Require(net_.input_blobs().size() == 1 && net_.output_blobs().size() == 1, model, ": has ",
                 net_.input_blobs().size(), " inputs and ", net_.output_blobs().size(),
                 " outputs; a classifier has one of each");
  const caffe::Blob& input = *net_.input_blobs()[0];
  channels_ = input.channels();
  size_ = cv::Size(input.width(), input.height());
  caffe::Require(channels_ == 1 || channels_ == 3, model, ": reads ", channels_,
                 " channels; an image has 1 or 3");
  const std::vector<float> values = ReadMean(mean);
  caffe::Require(static_cast<int>(values.size()) == channels_, "the mean has ", values.size(),
                 " channels and the net reads ", channels_);
  for (int channel = 0; channel < channels_; ++channel) mean_[channel] = values[channel];
  net_.input_blobs()[0]->Reshape(1, channels_, size_.height, size_.width);
  net_.Reshape();
  const int64_t classes = net_.output_blobs()[0]->count();
  caffe::Require(static_cast<int64_t>(labels_.size()) == classes, labels, ": has ", labels_.size(),
                 " lines; the net tells ", classes, " classes");
}

std::vector<Prediction> Classifier::Classify(const cv::Mat& image, size_t count) {
  Preprocess(image, net_.input_blobs()[0]->mutable_cpu_data());
  const caffe::Blob& output = *net_.Forward()[0];
  const float* scores = output.cpu_data();
  std::vector<int> order(labels_.size());
  std::iota(order.begin(), order.end(), 0);
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [scores](int a, int b) {
    // Sorting needs a total order, so NaN comes last.
    if (std::isnan(scores[a]) || std::isnan(scores[b]))
      return !std::isnan(scores[a]) && std::isnan(scores[b]);
    return scores[a] > scores[b];
  });
  std::vector<Prediction> best;
  for (size_t i = 0; i < count; ++i) best.push_back({labels_[order[i]], scores[order[i]]});
  return best;
}

// Converts to float planes B, G, R and subtracts the mean.
void Classifier::Preprocess(const cv::Mat& image, float* planes) const {
  cv::Mat pixels = image;
  if (image.channels() == 3 && channels_ == 1) cv::cvtColor(image, pixels, cv::COLOR_BGR2GRAY);
  if (image.channels() == 1 && channels_ == 3) cv::cvtColor(image, pixels, cv::COLOR_GRAY2BGR);
  if (pixels.size() != size_) cv::resize(pixels, pixels, size_);
  pixels.convertTo(pixels, channels_ == 3 ? CV_32FC3 : CV_32FC1);
  pixels -= mean_;
  std::vector<cv::Mat> parts;
  for (int channel = 0; channel < channels_; ++channel) {
    parts.emplace_back(size_, CV_32FC1, planes + int64_t{channel} * size_.area());
  }
  cv::split(pixels, parts);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: classification DEPLOY_PROTOTXT WEIGHTS MEAN LABELS IMAGE\n");
    return 1;
  }
  try {
    caffe::InitLog();
    Classifier classifier(argv[1], argv[2], argv[3], argv[4]);
    const cv::Mat image = cv::imread(argv[5]);
    caffe::Require(!image.empty(), argv[5], ": is not an image that OpenCV can read");
    for (const Prediction& prediction : classifier.Classify(image)) {
      std::printf("%.4f - \"%s\"\n", prediction.confidence, prediction.label.c_str());
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "classification: %s\n", error.what());
    return 1;
  }
}
