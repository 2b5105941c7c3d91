// caffe export: a net in a format of other programs.
#include <string>
#include <vector>

#include "tools/caffe/command.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/python_program.hpp"

namespace caffe::tools {
namespace {

// The writers are package caffe.onnx (python/caffe/onnx), so this hands over the options.
class Export : public Command {
 public:
  explicit Export(CLI::App& app) {
    AddModel(app, &model_)->description("The net prototxt, for phase TEST");
    AddWeights(app, &weights_);
    app.add_flag("--onnx", is_onnx_, "Write an ONNX model; there is no other format yet");
    app.add_option("--output", output_, "The file to write")->type_name("FILE")->required();
    app.add_option("--opset", opset_, "Version of ONNX's operators, from 11 on")->type_name("N");
    app.add_option("--detection", detection_,
                   "How to write DetectionOutput: with NonMaxSuppression, or not at all")
        ->type_name("nms|raw")
        ->check(CLI::IsMember({"nms", "raw"}));
    app.add_option("--check", check_,
                   "Compare the outputs with onnxruntime's; auto: where it is installed")
        ->type_name("auto|yes|no")
        ->check(CLI::IsMember({"auto", "yes", "no"}));
    app.add_option("--inputs", inputs_, "Arrays to compare with, by input; else random numbers")
        ->type_name("FILE.npz");
    app.add_option("--tolerance", tolerance_,
                   "Largest difference of an output, relative to its largest number")
        ->type_name("X");
  }

  void Run() override {
    RequireModel(model_);
    std::vector<std::string> words = {"export", model_};
    if (!weights_.empty()) words.push_back(weights_);
    words.insert(words.end(), {"--output", output_, "--opset", std::to_string(opset_),
                               "--detection", detection_, "--tolerance", tolerance_});
    if (!inputs_.empty()) words.insert(words.end(), {"--inputs", inputs_});
    if (check_ != "auto") words.push_back(check_ == "yes" ? "--check" : "--no-check");
    BecomePython("caffe.onnx", std::move(words));
  }

 private:
  std::string model_, weights_, output_, inputs_;
  std::string detection_ = "nms", check_ = "auto", tolerance_ = "1e-5";
  int opset_ = 13;
  bool is_onnx_ = true;
};

const CommandRegistrar<Export> export_registrar(
    "export",
    {.summary = "write a net as an ONNX model",
     .about =
         "Writes a net for inference as an ONNX model, and compares the outputs of onnxruntime "
         "with the net's; a model that differs is not written. Needs Python with packages "
         "onnx and, to compare, onnxruntime (pip install 'cortado[onnx]').",
     .examples =
         "caffe export --onnx deploy.prototxt --weights net.caffemodel --output net.onnx\n"
         "caffe export --onnx deploy.prototxt --output net.onnx --opset 17 --detection raw"});

}  // namespace
}  // namespace caffe::tools
