// caffe compile: writes a net and its weights into one file for the runtime library.
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "caffe/core/program_magic.hpp"
#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/own_files.hpp"

namespace caffe::tools {
namespace {

std::string Listed(const std::vector<std::string>& names, const std::vector<Blob*>& blobs) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += StrCat(i == 0 ? "" : ", ", names[i], " (", blobs[i]->shape(), ")");
  return text;
}

class Compile : public Command {
 public:
  explicit Compile(CLI::App& app) {
    AddModel(app, &model_)->description("The net's deploy.prototxt");
    AddWeights(app, &weights_);
    app.add_option("--output", output_, "The file to write")->type_name("FILE");
    app.add_option("--batch", batch_, "Batch size of each run, instead of that of the net's inputs")
        ->type_name("N")
        ->default_str("the net's");
    net_flags_.AddState(app);
    net_flags_.AddForeign(app);
    net_flags_.AddPrecision(app);
    net_flags_.AddCalibration(app);
    net_flags_.AddInputs(app);
    net_flags_.AddOverrides(app, "layer[pool1].pooling_param.kernel_size=3");
  }

  void Run() override {
    RequireModel(model_);
    Require(!output_.empty(), "--output is missing; give the file to write");
    Require(batch_ >= 0, "--batch is ", batch_, "; it must be positive");
    RequireOwnFile(output_, std::string(kProgramMagic));
    const std::unique_ptr<Net> net = net_flags_.MakeTrainedNet(model_, weights_);
    if (batch_ > 0) SetBatch(*net);
    net->SaveProgram(output_);
    std::cout << output_ << ": " << std::filesystem::file_size(output_) << " bytes, from "
              << Listed(net->input_names(), net->input_blobs()) << " to "
              << Listed(net->output_names(), net->output_blobs()) << "\n";
  }

 private:
  void SetBatch(Net& net) const {
    for (Blob* input : net.input_blobs()) {
      Require(input->shape().num_axes() > 0, "--batch: an input has no axes");
      input->Reshape(input->shape().With(0, batch_));
    }
    net.Reshape();
  }

  std::string model_, weights_, output_;
  int batch_ = 0;
  NetFlags net_flags_;
};

const CommandRegistrar<Compile> compile_registrar(
    "compile",
    {.purpose = Purpose::kConvert,
     .summary = "write a net for the runtime library",
     .about = "Compiles a net for inference, with its weights, to one file that libcortado_runtime "
              "runs: a library of a few megabytes without Caffe, protobuf or OpenCV, for x86-64 "
              "and Arm (docs/runtime.md). The shapes of the inputs are fixed.",
     .examples = "caffe compile deploy.prototxt --weights=net.caffemodel --output=net.cortado\n"
                 "caffe compile deploy.prototxt --weights=net.caffemodel --output=net8.cortado "
                 "--batch=8\n"
                 "caffe compile net.prototxt --weights=w.h5 --output=n.cortado --precision=int8 "
                 "--calibration=n.json"});

}  // namespace
}  // namespace caffe::tools
