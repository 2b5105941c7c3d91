#include "caffe/gradient_check.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "caffe/core/philox.hpp"
#include "caffe/error.hpp"
#include "caffe/net/training_net.hpp"

namespace caffe {
namespace {

constexpr uint64_t kPass = 5;  // arbitrary, but the same for all passes

// Weight of an output element in the sum that is differentiated.
double Factor(const Net& net, const std::string& output, int64_t element) {
  const float weight = net.loss_weight(output);
  if (weight != 0) return weight;
  return 2 * static_cast<double>(ToUniform(RandomStream(9, StreamOf(output)).Bits(element))) - 1;
}

double WeightedSum(Net& net) {
  TrainingNet(net).Forward(kPass);
  double sum = 0;
  for (const std::string& name : net.output_names()) {
    const Blob& blob = *net.blob_by_name(name);
    const double* y = blob.cpu_data<double>();
    for (int64_t i = 0; i < blob.count(); ++i) sum += y[i] * Factor(net, name, i);
  }
  return sum;
}

void RunBackward(Net& net) {
  WeightedSum(net);
  net.ClearParamDiffs();
  for (const std::string& name : net.output_names()) {
    Blob& blob = *net.blob_by_name(name);
    double* diff = blob.mutable_cpu_diff<double>();
    for (int64_t i = 0; i < blob.count(); ++i) diff[i] = Factor(net, name, i);
  }
  net.Backward();
}

double Estimate(Net& net, Blob& blob, int64_t element, double step) {
  const double x = blob.cpu_data<double>()[element];
  blob.mutable_cpu_data<double>()[element] = x + step;
  const double above = WeightedSum(net);
  blob.mutable_cpu_data<double>()[element] = x - step;
  const double below = WeightedSum(net);
  blob.mutable_cpu_data<double>()[element] = x;
  return (above - below) / (2 * step);
}

GradientDifference Compare(Net& net, const std::string& name, Blob& blob,
                           const GradientCheckOptions& options) {
  const bool is_double = blob.dtype() == DType::kDouble;
  const double step = options.step > 0 ? options.step : is_double ? 1e-5 : 1e-2;
  const double tolerance = options.tolerance > 0 ? options.tolerance : is_double ? 1e-6 : 1e-2;
  const double* diff = blob.cpu_diff<double>();
  const std::vector<double> gradient(diff, diff + blob.count());
  std::vector<double> estimates;
  for (int64_t i = 0; i < blob.count(); ++i) estimates.push_back(Estimate(net, blob, i, step));
  double scale = is_double ? 1e-3 : 1e-2;  // smaller gradients are dominated by rounding
  for (const double number : gradient) scale = std::max(scale, std::abs(number));
  for (const double number : estimates) scale = std::max(scale, std::abs(number));
  GradientDifference worst{.variable = name, .count = blob.count()};
  for (int64_t i = 0; i < blob.count(); ++i) {
    const double error = std::abs(gradient[i] - estimates[i]) / scale;
    if (i > 0 && error <= worst.error) continue;  // false for NaN
    worst.element = i;
    worst.gradient = gradient[i];
    worst.estimate = estimates[i];
    worst.error = error;
    if (std::isnan(error)) break;
  }
  worst.passes = worst.error <= tolerance;
  return worst;
}

}  // namespace

std::vector<GradientDifference> CheckGradients(Net& net, const std::vector<std::string>& inputs,
                                               const GradientCheckOptions& options) {
  RunBackward(net);
  std::vector<std::pair<std::string, Blob*>> variables;
  for (const std::string& name : inputs) variables.push_back({name, net.blob_by_name(name).get()});
  for (const Net::LearnableParam& learnable : net.learnable_params()) {
    if (learnable.has_gradient) variables.push_back({learnable.name, learnable.blob.get()});
  }
  std::vector<GradientDifference> differences;
  for (const auto& [name, blob] : variables) {
    differences.push_back(Compare(net, name, *blob, options));
  }
  return differences;
}

}  // namespace caffe
