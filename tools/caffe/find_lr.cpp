// caffe find-lr: runs the learning-rate range test.
#include <glog/logging.h>

#include <iostream>
#include <string>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/rate_finder.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/model_folder.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/own_files.hpp"

namespace caffe::tools {
namespace {

class FindLr : public Command {
 public:
  explicit FindLr(CLI::App& app) {
    AddSolver(app, &solver_);
    AddWeights(app, &weights_);
    AddGpu(app, &gpu_, "The number of the GPU to run on");
    const auto add = [&](const char* name, auto* value, const char* what) {
      app.add_option(name, *value, what)->type_name("N")->capture_default_str();
    };
    add("--iterations", &test_.iterations, "Iterations, in which the rate rises");
    add("--lowest_lr", &test_.lowest, "The rate of the first iteration");
    add("--highest_lr", &test_.highest, "The rate of the last iteration");
    add("--smoothing", &test_.smoothing, "Weight of the past in the mean of the losses, 0 to 1");
    app.add_option("--svg", svg_, "Where to draw the curve")->type_name("FILE.svg");
    net_flags_.AddState(app);
    net_flags_.AddForeign(app);
    net_flags_.AddPrecision(app);
    net_flags_.AddOverrides(app, "layer[data].data_param.batch_size=16");
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    Require(!solver_.empty(), "--solver is missing; give a model's folder, or a solver prototxt");
    EnterFolderOfSolver(&solver_, {&svg_}, &weights_);
    if (!svg_.empty()) RequireOwnFile(svg_, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=");
    std::string net_file;
    SolverParameter param = net_flags_.ReadSolver(solver_, &net_file);
    if (!weights_.empty()) param.add_weights(weights_);
    const bool wants_gpu = param.has_solver_mode() && param.solver_mode() == SolverParameter::GPU;
    if (gpu_.empty() && wants_gpu) gpu_ = std::to_string(param.device_id());
    UseDevice(gpu_);
    const RateTest test = FindRate(param,
                                   {.keep_all = false,
                                    .file = solver_,
                                    .net_file = net_file,
                                    .lenient = net_flags_.lenient,
                                    .logs_definitions = false},
                                   test_);
    if (!svg_.empty()) {
      WriteFileAtomically(svg_, FormatRateTestSvg(test));
      LOG(INFO) << "The curve is in " << svg_;
    }
    std::cout << (json_ ? FormatRateTestJson(test) : FormatRateTest(test));
  }

 private:
  std::string solver_, weights_, gpu_, svg_;
  RateTestOptions test_;
  NetFlags net_flags_;
  bool json_ = false;
};

const CommandRegistrar<FindLr> find_lr_registrar(
    "find-lr",
    {.purpose = Purpose::kTrain,
     .summary = "find a good learning rate",
     .about = "Trains the net of a solver prototxt for some iterations while the learning rate "
              "rises from --lowest_lr to --highest_lr, and shows where its loss falls fastest. "
              "Writes no "
              "snapshot.",
     .examples = "caffe find-lr photos_model\n"
                 "caffe find-lr solver.prototxt --iterations=300 --highest_lr=1 --svg=rates.svg"});

}  // namespace
}  // namespace caffe::tools
