// Base of the commands that run a net on images: classify, detect and segment.
#pragma once

#include <memory>
#include <string>

#include "caffe/io/class_names.hpp"
#include "caffe/io/json.hpp"
#include "caffe/model_info.hpp"
#include "caffe/net.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/image_feed.hpp"
#include "tools/caffe/options.hpp"

namespace caffe::tools {

class AskCommand : public Command {
 public:
  explicit AskCommand(CLI::App& app);
  // Calls Report for each image in order. With --json, prints what Report put into `result`.
  // Throws IoError at the end if some images could not be read.
  void Run() override;

 protected:
  // Called once, before the first image.
  virtual void Prepare(const Net& /*net*/) {}
  // Called for image `index` of the batch that the net has just processed.
  virtual void Report(const Net& net, int index, const ShownImage& image, JsonObject* result) = 0;
  const ClassNames& names() const { return names_; }
  // True if the user gave --labels.
  bool has_labels() const { return !labels_.empty(); }
  bool prints_json() const { return json_; }

 private:
  void TakeFolder();
  std::unique_ptr<Net> MakeNet() const;
  // Takes the class names from the weights, the net or the model's folder.
  void TakeNames();
  void Ask(Net& net, ImageFeed& feed, JsonObject* root);

  std::string model_, weights_, gpu_, labels_;
  std::string folder_labels_;  // label file of a model of the zoo
  std::string trained_net_;    // of the folder whose deploy.prototxt and weights are used
  NetFlags net_flags_;
  ImageFlags image_flags_;
  bool json_ = false;
  ClassNames names_;
};

}  // namespace caffe::tools
