// caffe check-layer: a layer's gradients against finite differences.
#include <iomanip>
#include <iostream>
#include <map>

#include "caffe/core/philox.hpp"
#include "caffe/error.hpp"
#include "caffe/gradient_check.hpp"
#include "caffe/io/json.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/options.hpp"

namespace caffe::tools {
namespace {

class CheckLayer : public Command {
 public:
  explicit CheckLayer(CLI::App& app) {
    AddModel(app, &model_)->description("A small net with the layer, on layers of type Input");
    app.add_option("--labels", labels_,
                   "Inputs that hold labels, not numbers that are differentiated: BLOB=N fills the "
                   "blob with 0 to N-1; may be given several times")
        ->type_name("BLOB=N")
        ->default_str("")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--step", options_.step,
                   "By how much each number is moved; 0: 1e-5 in a net of doubles, else 1e-2")
        ->type_name("X");
    app.add_option("--tolerance", options_.tolerance,
                   "Largest error that passes; 0: 1e-6 in a net of doubles, else 1e-2")
        ->type_name("X");
    net_flags_.precision = FP64;
    net_flags_.AddPhase(app);
    net_flags_.AddState(app);
    net_flags_.AddForeign(app);
    net_flags_.AddPrecision(app)->default_str("fp64");
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    RequireModel(model_);
    NetOptions options = net_flags_.ToNetOptions(/*with_backward=*/true);
    options.keep_all = true;
    options.seed = 1;
    const std::unique_ptr<Net> net =
        net_flags_.MakeNet(model_, net_flags_.phase, options, nullptr,
                           [this](NetParameter* param) { Prepare(param); });
    const std::vector<GradientDifference> found = CheckGradients(*net, Fill(*net), options_);
    Require(!found.empty(), model_, ": the net has neither inputs nor parameters to check");
    json_ ? PrintJson(found) : PrintTable(found);
    for (const GradientDifference& one : found) {
      Require(one.passes, model_, ": the gradient of '", one.variable, "' is off by ", one.error,
              " at element ", one.element, ": backward gives ", one.gradient,
              ", differences of forward ", one.estimate);
    }
  }

 private:
  // Layers written for Caffe's C++ API compute in double only if their forward_type and
  // backward_type say so.
  void Prepare(NetParameter* param) const {
    param->set_force_backward(true);
    if (net_flags_.precision != FP64) return;
    for (LayerParameter& layer : *param->mutable_layer()) {
      if (!layer.has_forward_type()) layer.set_forward_type(DOUBLE);
      if (!layer.has_backward_type()) layer.set_backward_type(DOUBLE);
    }
  }

  // Fills all inputs; returns the names of those to differentiate.
  std::vector<std::string> Fill(Net& net) const {
    std::map<std::string, int64_t> labels;
    for (const std::string& text : labels_) {
      const auto [blob, classes] = ParseLabels(text);
      net.blob_by_name(blob);  // throws if there is no such blob
      labels[blob] = classes;
    }
    std::vector<std::string> variables;
    for (const std::string& name : net.input_names()) {
      Blob& blob = *net.blob_by_name(name);
      double* values = blob.mutable_cpu_data<double>();
      const auto of_labels = labels.find(name);
      const RandomStream random(/*seed=*/1, StreamOf(name));
      for (int64_t i = 0; i < blob.count(); ++i) {
        values[i] = of_labels != labels.end()
                        ? static_cast<double>(i % of_labels->second)
                        : 2 * static_cast<double>(ToUniform(random.Bits(i))) - 1;
      }
      if (of_labels == labels.end()) variables.push_back(name);
    }
    return variables;
  }

  static std::pair<std::string, int64_t> ParseLabels(const std::string& text) {
    const size_t equals = text.find('=');
    const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
    const bool is_number = !number.empty() && number.size() <= 9 &&
                           number.find_first_not_of("0123456789") == std::string::npos;
    Require(is_number && std::stoll(number) > 0, "--labels is '", text,
            "'; give a blob and the number of classes, as in label=10");
    return {text.substr(0, equals), std::stoll(number)};
  }

  static void PrintTable(const std::vector<GradientDifference>& found) {
    size_t width = 8;
    for (const GradientDifference& one : found) width = std::max(width, one.variable.size());
    const int column = static_cast<int>(width) + 2;
    std::cout << std::left << std::setw(column) << "variable" << std::right << std::setw(8)
              << "values" << std::setw(14) << "largest error"
              << "\n";
    for (const GradientDifference& one : found) {
      std::cout << std::left << std::setw(column) << one.variable << std::right << std::setw(8)
                << one.count << std::setw(14) << one.error << (one.passes ? "" : "  too large")
                << "\n";
    }
  }

  static void PrintJson(const std::vector<GradientDifference>& found) {
    JsonObject root;
    MakeJsonList(&root, "variables");
    for (const GradientDifference& one : found) {
      JsonObject* variable = AddJson(&root, "variables");
      PutJson(variable, "variable", one.variable);
      PutJson(variable, "values", static_cast<double>(one.count));
      PutJson(variable, "element", static_cast<double>(one.element));
      PutJson(variable, "gradient", one.gradient);
      PutJson(variable, "estimate", one.estimate);
      PutJson(variable, "error", one.error);
      PutJson(variable, "passes", one.passes);
    }
    std::cout << FormatJson(root);
  }

  std::string model_;
  std::vector<std::string> labels_;
  NetFlags net_flags_;
  GradientCheckOptions options_;
  bool json_ = false;
};

const CommandRegistrar<CheckLayer> check_layer_registrar(
    "check-layer",
    {.purpose = Purpose::kInspect,
     .summary = "compare a layer's gradients with finite differences",
     .about = "Runs a small net with random inputs forward and backward and compares the gradients "
              "of its inputs and parameters with differences of forward. The exit status is 1 "
              "where one is off.",
     .examples = "caffe check-layer net.prototxt --plugin=./my_layers.so\n"
                 "caffe check-layer loss.prototxt --labels=label=10"});

}  // namespace
}  // namespace caffe::tools
