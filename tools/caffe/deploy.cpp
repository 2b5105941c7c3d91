// caffe deploy: derives the inference net from a training net.
#include "caffe/deploy.hpp"

#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include "caffe/core/counted.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/model_info.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/model_folder.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/own_files.hpp"

namespace caffe::tools {
namespace {

class Deploy : public Command {
 public:
  explicit Deploy(CLI::App& app) {
    AddModel(app, &model_)->description("The net that was trained: train_val.prototxt");
    app.add_option("--output", output_, "The prototxt to write")->type_name("FILE.prototxt");
    app.add_option("--inputs", inputs_,
                   "Which tops of data layers the net is asked about; the others are labels")
        ->type_name("BLOB,...")
        ->default_str("the first");
    app.add_flag("--force", force_, "Overwrite an existing file");
    net_flags_.AddState(app);
    net_flags_.AddForeign(app);
    net_flags_.AddOverrides(app, "layer[data].data_param.source=photos_lmdb");
    net_flags_.AddInputs(app);
  }

  void Run() override {
    RequireModel(model_);
    Require(!ModelFolder::Is(model_), model_,
            ": is a folder; give the net that was trained: ", model_, "/train_val.prototxt");
    Require(!output_.empty(), "--output is missing; give the file to write");
    if (!force_) RequireNewFile(output_);
    std::error_code not_there;
    Require(!std::filesystem::equivalent(model_, output_, not_there), output_,
            ": is the net that was trained, which would be lost; give another --output");
    NetOptions options = net_flags_.ToNetOptions(/*with_backward=*/false);
    options.allocate = false;
    // Inputs that replace missing data say nothing about the data's preprocessing.
    ModelInfo info;
    const auto net = net_flags_.MakeNet(model_, TEST, options, nullptr, [&](NetParameter* param) {
      info = DescribeModel(*param);
      if (info.ByteSizeLong() > 0) *param->mutable_model_info() = info;
    });
    const NetParameter deploy = DeployNet(*net, SplitByComma(inputs_));
    WriteTextProto(output_, deploy);
    std::cout << output_ << ": " << Counted(deploy.layer_size(), "layer");
    if (info.label_size() > 0) {
      std::cout << ", " << Counted(info.label_size(), "class", "classes");
    }
    std::cout << "\n";
  }

 private:
  std::string model_, output_, inputs_;
  bool force_ = false;
  NetFlags net_flags_;
};

const CommandRegistrar<Deploy> deploy_registrar(
    "deploy",
    {.purpose = Purpose::kConvert,
     .summary = "make a net for inference from a trained net",
     .about = "Writes the net of phase TEST with an input instead of its data and without what "
              "needs labels; scores of a softmax loss become probabilities. Mean, scale and the "
              "names of the classes come along, so that caffe classify and caffe detect need no "
              "flags for them.",
     .examples =
         "caffe deploy train_val.prototxt --output=deploy.prototxt\n"
         "caffe deploy faster_rcnn.prototxt --output=deploy.prototxt --inputs=data,im_info"});

}  // namespace
}  // namespace caffe::tools
