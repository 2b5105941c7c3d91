#include "tools/caffe/score_nets.hpp"

#include <glog/logging.h>

#include <iostream>

#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/model_folder.hpp"

namespace caffe::tools {

ScoreCommand::ScoreCommand(CLI::App& app) {
  AddModel(app, &models_)->description("The net prototxt, or several separated by commas");
  AddWeights(app, &weights_);
  AddIterationsOrAll(app, &iterations_, &scores_all_);
  AddGpu(app, &gpu_, "The number of the GPU to run on");
  net_flags_.AddState(app);
  net_flags_.AddForeign(app);
  net_flags_.AddPrecision(app);
  net_flags_.AddCalibration(app);
  net_flags_.AddOverrides(app, "layer[data].data_param.batch_size=16");
  AddJsonFlag(app, &json_);
}

void ScoreCommand::Run() {
  RequireModel(models_);
  EnterFolderToTest(&models_, {&net_flags_.calibration}, &weights_);
  UseDevice(gpu_);
  const std::vector<std::string> models = SplitPaths(models_);
  JsonObject root;
  for (const std::string& model : models) {
    if (models.size() > 1) LOG(INFO) << "Net " << model;
    const std::unique_ptr<Net> net = net_flags_.MakeTrainedNet(model, weights_, scores_all_);
    if (scores_all_) {
      epoch_ = WithContext(model + ": --iterations is all; give a number instead, because",
                           [&] { return BatchesOfEpoch(*net); });
      LOG(INFO) << "Each of " << epoch_->records << " records is scored once.";
    }
    LOG(INFO) << "Running for " << iterations() << " iterations.";
    JsonObject* result = AddJson(&root, "nets");
    PutJson(result, "net", model);
    PutJson(result, "iterations", iterations());
    if (epoch_) PutJson(result, "records", epoch_->records);
    Score(*net, result);
  }
  if (json_) std::cout << FormatJson(root);
}

}  // namespace caffe::tools
