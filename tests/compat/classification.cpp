// Classifies an image, as programs for Caffe do.
//
//   classification DEPLOY_PROTOTXT WEIGHTS MEAN_BINARYPROTO LABELS IMAGE
#include <algorithm>
#include <caffe/caffe.hpp>
#include <cstdio>
#include <memory>
#include <opencv2/core/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc/imgproc.hpp>
#include <string>
#include <utility>
#include <vector>

using namespace caffe;  // NOLINT(build/namespaces)
using std::string;

typedef std::pair<string, float> Prediction;

class Classifier {
 public:
  Classifier(const string& model_file, const string& trained_file, const string& mean_file,
             const string& label_file);

  std::vector<Prediction> Classify(const cv::Mat& img, int N = 5);

 private:
  void SetMean(const string& mean_file);
  std::vector<float> Predict(const cv::Mat& img);
  void WrapInputLayer(std::vector<cv::Mat>* input_channels);
  void Preprocess(const cv::Mat& img, std::vector<cv::Mat>* input_channels);

  shared_ptr<Net<float> > net_;
  cv::Size input_geometry_;
  int num_channels_;
  cv::Mat mean_;
  std::vector<string> labels_;
};

Classifier::Classifier(const string& model_file, const string& trained_file,
                       const string& mean_file, const string& label_file) {
#ifdef CPU_ONLY
  Caffe::set_mode(Caffe::CPU);
#else
  Caffe::set_mode(Caffe::GPU);
#endif
  net_.reset(new Net<float>(model_file, TEST));
  net_->CopyTrainedLayersFrom(trained_file);
  CHECK_EQ(net_->num_inputs(), 1) << "Network should have exactly one input.";
  CHECK_EQ(net_->num_outputs(), 1) << "Network should have exactly one output.";

  Blob<float>* input_layer = net_->input_blobs()[0];
  num_channels_ = input_layer->channels();
  CHECK(num_channels_ == 3 || num_channels_ == 1) << "Input layer should have 1 or 3 channels.";
  input_geometry_ = cv::Size(input_layer->width(), input_layer->height());
  SetMean(mean_file);

  std::ifstream labels(label_file.c_str());
  CHECK(labels) << "Unable to open labels file " << label_file;
  string line;
  while (std::getline(labels, line)) labels_.push_back(string(line));
  Blob<float>* output_layer = net_->output_blobs()[0];
  CHECK_EQ(static_cast<int>(labels_.size()), output_layer->channels())
      << "Number of labels is different from the output layer dimension.";
}

std::vector<Prediction> Classifier::Classify(const cv::Mat& img, int N) {
  const std::vector<float> output = Predict(img);
  std::vector<std::pair<float, int> > order;
  for (size_t i = 0; i < output.size(); ++i) order.push_back(std::make_pair(-output[i], i));
  N = std::min<int>(labels_.size(), N);
  std::partial_sort(order.begin(), order.begin() + N, order.end());
  std::vector<Prediction> predictions;
  for (int i = 0; i < N; ++i) {
    predictions.push_back(std::make_pair(labels_[order[i].second], -order[i].first));
  }
  return predictions;
}

void Classifier::SetMean(const string& mean_file) {
  BlobProto blob_proto;
  ReadProtoFromBinaryFileOrDie(mean_file.c_str(), &blob_proto);
  Blob<float> mean_blob;
  mean_blob.FromProto(blob_proto);
  CHECK_EQ(mean_blob.channels(), num_channels_)
      << "Number of channels of mean file doesn't match input layer.";
  std::vector<cv::Mat> channels;
  float* data = mean_blob.mutable_cpu_data();
  for (int i = 0; i < num_channels_; ++i) {
    channels.push_back(cv::Mat(mean_blob.height(), mean_blob.width(), CV_32FC1, data));
    data += mean_blob.height() * mean_blob.width();
  }
  cv::Mat mean;
  cv::merge(channels, mean);
  mean_ = cv::Mat(input_geometry_, mean.type(), cv::mean(mean));
}

std::vector<float> Classifier::Predict(const cv::Mat& img) {
  Blob<float>* input_layer = net_->input_blobs()[0];
  input_layer->Reshape(1, num_channels_, input_geometry_.height, input_geometry_.width);
  net_->Reshape();
  std::vector<cv::Mat> input_channels;
  WrapInputLayer(&input_channels);
  Preprocess(img, &input_channels);
  net_->Forward();
  Blob<float>* output_layer = net_->output_blobs()[0];
  const float* begin = output_layer->cpu_data();
  return std::vector<float>(begin, begin + output_layer->channels());
}

void Classifier::WrapInputLayer(std::vector<cv::Mat>* input_channels) {
  Blob<float>* input_layer = net_->input_blobs()[0];
  const int width = input_layer->width(), height = input_layer->height();
  float* input_data = input_layer->mutable_cpu_data();
  for (int i = 0; i < input_layer->channels(); ++i) {
    input_channels->push_back(cv::Mat(height, width, CV_32FC1, input_data));
    input_data += width * height;
  }
}

void Classifier::Preprocess(const cv::Mat& img, std::vector<cv::Mat>* input_channels) {
  cv::Mat sample = img;
  if (img.channels() == 3 && num_channels_ == 1) cv::cvtColor(img, sample, cv::COLOR_BGR2GRAY);
  cv::Mat sample_resized = sample;
  if (sample.size() != input_geometry_) cv::resize(sample, sample_resized, input_geometry_);
  cv::Mat sample_float, sample_normalized;
  sample_resized.convertTo(sample_float, num_channels_ == 3 ? CV_32FC3 : CV_32FC1);
  cv::subtract(sample_float, mean_, sample_normalized);
  // Writes into the input layer, because the planes are its memory.
  cv::split(sample_normalized, *input_channels);
  CHECK(reinterpret_cast<float*>(input_channels->at(0).data) == net_->input_blobs()[0]->cpu_data())
      << "Input channels are not wrapping the input layer of the network.";
}

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: %s DEPLOY WEIGHTS MEAN LABELS IMAGE\n", argv[0]);
    return 1;
  }
  ::google::InitGoogleLogging(argv[0]);
  Classifier classifier(argv[1], argv[2], argv[3], argv[4]);
  const cv::Mat img = cv::imread(argv[5], -1);
  CHECK(!img.empty()) << "Unable to decode image " << argv[5];
  const std::vector<Prediction> predictions = classifier.Classify(img);
  for (size_t i = 0; i < predictions.size(); ++i) {
    std::printf("%.9g - \"%s\"\n", predictions[i].second, predictions[i].first.c_str());
  }
  return 0;
}
