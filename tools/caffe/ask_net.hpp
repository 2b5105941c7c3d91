// What the commands that ask a net about images have in common.
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
  // Calls Report for each image, in their order. With --json prints what Report put into `result`.
  // Throws IoError at the end where images could not be read.
  void Run() override;

 protected:
  // Once, before the first image.
  virtual void Prepare(const Net& /*net*/) {}
  // Image `index` of those that have just gone through the net.
  virtual void Report(const Net& net, int index, const ShownImage& image, JsonObject* result) = 0;
  const ClassNames& names() const { return names_; }
  // Whether the user gave the names.
  bool has_labels() const { return !labels_.empty(); }
  bool prints_json() const { return json_; }

 private:
  void TakeFolder();
  // Those that the weights, the net or the folder tell.
  void TakeNames();
  void Ask(Net& net, ImageFeed& feed, JsonObject* root);

  std::string model_, weights_, gpu_, labels_;
  std::string folder_labels_;  // a file, of a model of the zoo
  NetFlags net_flags_;
  ImageFlags image_flags_;
  bool json_ = false;
  ClassNames names_;
};

}  // namespace caffe::tools
