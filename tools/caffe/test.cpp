// caffe test: prints the mean of each of a net's outputs over its test data.
#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "caffe/core/value_range.hpp"
#include "tools/caffe/score_nets.hpp"

namespace caffe::tools {
namespace {

// Weighted sums of the net's outputs over batches.
class OutputSums {
 public:
  explicit OutputSums(const Net& net) : names_(net.output_names()), sums_(names_.size()) {}

  void Add(const Net& net, int batch, double weight) {
    for (size_t k = 0; k < names_.size(); ++k) {
      const Blob& blob = *net.output_blobs()[k];
      const std::vector<float> values(blob.cpu_data(), blob.cpu_data() + blob.count());
      if (sums_[k].size() < values.size()) sums_[k].resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) sums_[k][i] += weight * values[i];
      if (values.size() > kMostLinesOfValues) {
        LOG(INFO) << "Batch " << batch << ", " << names_[k] << " = " << TextOfRange(values);
        continue;
      }
      for (const float value : values)
        LOG(INFO) << "Batch " << batch << ", " << names_[k] << " = " << value;
    }
  }

  void Report(const Net& net, double weights, JsonObject* result) const {
    for (size_t k = 0; k < names_.size(); ++k) {
      const float weight = net.loss_weight(names_[k]);
      std::vector<float> means;
      for (const double sum : sums_[k]) {
        const double mean = sum / weights;
        means.push_back(static_cast<float>(mean));
        JsonObject* output = AddJson(result, "outputs");
        PutJson(output, "name", names_[k]);
        PutJson(output, "mean", mean);
        PutJson(output, "loss_weight", weight);
        if (sums_[k].size() > kMostLinesOfValues) continue;
        std::ostringstream loss;
        if (weight != 0) loss << " (* " << weight << " = " << weight * mean << " loss)";
        LOG(INFO) << names_[k] << " = " << mean << loss.str();
      }
      if (means.size() > kMostLinesOfValues) LOG(INFO) << names_[k] << " = " << TextOfRange(means);
    }
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<double>> sums_;  // per output, one of each of its values
};

// A deploy net has inputs that this command does not fill.
void WarnOfEmptyInputs(const Net& net) {
  for (const LayerParameter& layer : net.definition().layer()) {
    if (layer.type() != "Input") continue;
    for (const std::string& top : layer.top()) {
      LOG(WARNING) << "input '" << top
                   << "' is all 0, because caffe test reads data by data layers only; the numbers "
                      "below say nothing about the model: give a net with a data layer instead of "
                      "layer '"
                   << layer.name() << "'";
    }
  }
}

bool IsFinite(const Blob& blob) {
  return std::all_of(blob.cpu_data(), blob.cpu_data() + blob.count(),
                     [](float value) { return std::isfinite(value); });
}

// Logs which number of a batch is not finite, and whether the weights are the cause. Returns false
// if all numbers are finite.
bool WarnOfNonFinite(const Net& net, int batch, float loss) {
  std::string what = std::isfinite(loss) ? "" : "the loss";
  for (size_t k = 0; what.empty() && k < net.output_blobs().size(); ++k) {
    if (!IsFinite(*net.output_blobs()[k])) what = "output '" + net.output_names()[k] + "'";
  }
  if (what.empty()) return false;
  std::string cause = "the weights are finite, so look at the data and at --precision";
  for (const Net::LearnableParam& param : net.learnable_params()) {
    if (IsFinite(*param.blob)) continue;
    cause = "parameter " + param.name + " is not finite; use an earlier snapshot";
    break;
  }
  LOG(WARNING) << "Batch " << batch << ": " << what
               << " is not finite, so its mean says nothing: " << cause;
  return true;
}

class Test : public ScoreCommand {
 public:
  using ScoreCommand::ScoreCommand;

 private:
  void Score(Net& net, JsonObject* result) override {
    WarnOfEmptyInputs(net);
    OutputSums sums(net);
    double loss_sum = 0;
    bool has_warned = false;
    for (int i = 0; i < iterations(); ++i) {
      float loss = 0;
      net.Forward(&loss);
      loss_sum += WeightOf(i) * loss;
      sums.Add(net, i, WeightOf(i));
      has_warned = has_warned || WarnOfNonFinite(net, i, loss);
    }
    LOG(INFO) << "Loss: " << loss_sum / weights();
    PutJson(result, "loss", loss_sum / weights());
    sums.Report(net, weights(), result);
  }
};

const CommandRegistrar<Test> test_registrar(
    "test",
    {.purpose = Purpose::kUse,
     .summary = "score a model",
     .about = "Runs batches of the net's TEST data through a model and prints the mean of "
              "each output, such as loss and accuracy.",
     .examples = "caffe test photos_model\n"
                 "caffe test lenet.prototxt --weights=lenet.caffemodel --iterations=100\n"
                 "caffe test lenet.prototxt --weights=lenet.caffemodel --iterations=all --gpu=0"});

}  // namespace
}  // namespace caffe::tools
