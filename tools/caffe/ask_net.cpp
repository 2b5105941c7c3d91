#include "tools/caffe/ask_net.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "caffe/core/counted.hpp"
#include "caffe/error.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/model_folder.hpp"

namespace caffe::tools {
namespace {

// Extents of the net's only input, with a batch of 1.
ImageFeed::Extents ExtentsOf(const Net& net, const std::string& model) {
  Require(net.input_blobs().size() == 1, model, ": has ", net.input_blobs().size(),
          " inputs; a net that is asked about images has one (its deploy.prototxt)");
  const Shape& shape = net.input_blobs()[0]->shape();
  Require(shape.num_axes() == 4, model, ": input '", net.input_names()[0], "' has the shape ",
          shape, "; images need N x C x H x W");
  return {1, {static_cast<int>(shape[1]), static_cast<int>(shape[2]), static_cast<int>(shape[3])}};
}

void Resize(Net& net, int64_t images) {
  Blob& input = *net.input_blobs()[0];
  if (input.shape()[0] == images) return;
  input.Reshape(Shape{images, input.shape()[1], input.shape()[2], input.shape()[3]});
  net.Reshape();
}

}  // namespace

AskCommand::AskCommand(CLI::App& app) {
  AddModel(app, &model_)
      ->description("The net's deploy.prototxt, with one input, or the folder of a model");
  AddWeights(app, &weights_);
  image_flags_.Add(app);
  app.add_option("--labels", labels_,
                 "Names of the classes: a line for each from 0 on, or a LabelMap prototxt")
      ->type_name("FILE");
  AddGpu(app, &gpu_, "The number of the GPU to run on");
  net_flags_.AddState(app);
  net_flags_.AddForeign(app);
  net_flags_.AddPrecision(app);
  net_flags_.AddCalibration(app);
  net_flags_.AddOverrides(app, "layer[detection_out].detection_output_param.keep_top_k=20");
  AddJsonFlag(app, &json_);
}

void AskCommand::Run() {
  RequireModel(model_);
  image_flags_.Check();
  if (!labels_.empty()) names_ = ClassNames(labels_);
  TakeFolder();
  UseDevice(gpu_);
  const std::unique_ptr<Net> net = MakeNet();
  image_flags_.info = MergedModelInfo(
      image_flags_.info,
      MergedModelInfo(ModelInfoOfWeights(weights_), net->definition().model_info()));
  if (labels_.empty()) TakeNames();
  ImageFeed::Extents extents = ExtentsOf(*net, model_);
  extents.batch = std::max(image_flags_.batch, 1);
  Prepare(*net);
  ImageFeed feed(image_flags_, extents);
  JsonObject root;
  MakeJsonList(&root, "images");
  Ask(*net, feed, &root);
  if (json_) std::cout << FormatJson(root);
  if (feed.num_failed() > 0) {
    throw IoError(
        StrCat(feed.num_failed(), " of the images could not be read or transformed; see above"));
  }
}

void AskCommand::TakeFolder() {
  if (!ModelFolder::Is(model_)) return;
  const ModelFolder folder(model_);
  model_ = folder.deploy();
  if (weights_.empty()) {
    weights_ = folder.Weights();
    trained_net_ = folder.trained_net();
  }
  image_flags_.info = folder.Info();
  folder_labels_ = folder.Labels();
}

std::unique_ptr<Net> AskCommand::MakeNet() const {
  try {
    return net_flags_.MakeTrainedNet(model_, weights_);
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    const bool is_outdated = !trained_net_.empty() && text.starts_with(weights_ + ": ");
    if (!is_outdated) throw;
    throw InvalidArgument(StrCat(model_, ": is older than the weights, which were trained with ",
                                 "another net; make it again: caffe deploy ",
                                 ShellWord(trained_net_), " --force --output=", ShellWord(model_),
                                 " (", text.substr(0, text.rfind(';')), ")"));
  }
}

void AskCommand::TakeNames() {
  const auto& labels = image_flags_.info.label();
  if (labels.empty() && !folder_labels_.empty()) {
    names_ = ClassNames(folder_labels_);
  } else {
    names_ = ClassNames(std::vector<std::string>(labels.begin(), labels.end()));
  }
}

void AskCommand::Ask(Net& net, ImageFeed& feed, JsonObject* root) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  int64_t images = 0;
  for (ImageFeed::Batch batch = feed.Next(); !batch.images.empty(); batch = feed.Next()) {
    Resize(net, static_cast<int64_t>(batch.images.size()));
    std::copy(batch.values.begin(), batch.values.end(),
              net.input_blobs()[0]->mutable_cpu_data<float>());
    net.Forward();
    for (size_t i = 0; i < batch.images.size(); ++i) {
      JsonObject* const result = AddJson(root, "images");
      PutJson(result, "image", batch.images[i].name);
      Report(net, static_cast<int>(i), batch.images[i], result);
    }
    std::cout << std::flush;
    images += static_cast<int64_t>(batch.images.size());
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  LOG(INFO) << Counted(images, "image") << " in " << seconds << " s, "
            << static_cast<double>(images) / seconds << " images/s";
}

}  // namespace caffe::tools
