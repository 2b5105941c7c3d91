#include "tools/caffe/score_nets.hpp"

#include <glog/logging.h>

#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/solver_factory.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/flags.hpp"

namespace caffe::tools {

void ScoreNets(const std::function<void(Net& net)>& score) {
  Require(!FLAGS_model.empty(), "-model is missing; give the net prototxt");
  CheckIterations();
  UseDevice();
  const std::vector<std::string> models = SplitByComma(FLAGS_model);
  for (const std::string& model : models) {
    if (models.size() > 1) LOG(INFO) << "Net " << model;
    Net net(model, TEST, FLAGS_level, StagesFromFlag(),
            NetOptionsFromFlags(/*with_backward=*/false));
    Require(!FLAGS_weights.empty() || net.learnable_params().empty(),
            "-weights is missing; give the .caffemodel to score");
    if (!FLAGS_weights.empty()) LoadWeights(FLAGS_weights, &net);
    LOG(INFO) << "Running for " << FLAGS_iterations << " iterations.";
    score(net);
  }
}

}  // namespace caffe::tools
