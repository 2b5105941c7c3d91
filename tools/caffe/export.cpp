// caffe export: writes a net in a format of other programs.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caffe/error.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/model_folder.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/python_program.hpp"

namespace caffe::tools {
namespace {

// Passes the options to the package caffe.onnx (python/caffe/onnx), which has the writers.
class Export : public Command {
 public:
  // Refers to options by pointer: CLI11's lookup by name ends the program if memory runs out.
  explicit Export(CLI::App& app) {
    AddModel(app, &model_)->description("The net prototxt, for phase TEST, or a model's folder");
    AddWeights(app, &weights_);
    app.add_flag("--onnx", is_onnx_,
                 "Write an ONNX model; a profile may ask for Caffe's files instead");
    app.add_option("--output", output_,
                   "The file to write; .onnx, or .prototxt, is added where it has no extension")
        ->type_name("FILE");
    app.add_flag("--profiles", lists_profiles_, "List the chips that --profile knows");
    CLI::Option* const profile =
        app.add_option(
               "--profile", profile_,
               "The chip that the model is for; what it does not take is rewritten, or refused")
            ->type_name("NAME|FILE.json");
    app.add_flag("--allow-unsupported", allow_unsupported_,
                 "Write what the profile's chip does not take all the same, with a warning")
        ->needs(profile);
    app.add_option("--batch", batch_, "Batch size, instead of that of the net's inputs")
        ->type_name("N");
    app.add_option("--opset", opset_,
                   "Version of ONNX's operators, from 11 on; else the profile's, or 13")
        ->type_name("N");
    app.add_option("--detection", detection_,
                   "How to write DetectionOutput: with NonMaxSuppression, or not at all; else the "
                   "profile's, or nms")
        ->type_name("nms|raw")
        ->check(CLI::Validator(CLI::IsMember({"nms", "raw"})).description(""));
    app.add_option("--check", check_,
                   "Compare the outputs with onnxruntime's; auto: where it is installed")
        ->type_name("auto|yes|no")
        ->check(CLI::Validator(CLI::IsMember({"auto", "yes", "no"})).description(""));
    CLI::Option* const int8 =
        app.add_option("--int8", int8_,
                       "Compute in 8 bits, by a file of caffe calibrate: QuantizeLinear and "
                       "DequantizeLinear around layers that can")
            ->type_name("FILE.json");
    app.add_option("--keep-float", keep_float_, "Layers that --int8 leaves as they are")
        ->type_name("LAYER,...")
        ->needs(int8);
    app.add_flag("--find-sensitive", finds_sensitive_,
                 "Tell how much each layer alone changes the outputs in 8 bits; give real --inputs")
        ->needs(int8);
    app.add_option("--inputs", inputs_, "Arrays to compare with, by input; else random numbers")
        ->type_name("FILE.npz");
    app.add_option("--tolerance", tolerance_,
                   "Largest difference of an output, relative to its largest number")
        ->type_name("X")
        ->check(CLI::Validator(CLI::Number).description(""));
  }

  void Run() override {
    if (lists_profiles_) BecomePython("export", "caffe.onnx", {"profiles"});
    RequireModel(model_);
    TakeFolder();
    Require(!output_.empty(), "--output is missing; give the file to write");
    std::vector<std::string> words = {"export"};
    AddOptions({{"--output", output_},
                {"--profile", profile_},
                {"--detection", detection_},
                {"--int8", int8_},
                {"--keep-float", keep_float_},
                {"--inputs", inputs_},
                {"--tolerance", tolerance_},
                {"--batch", batch_ ? StrCat(*batch_) : ""},
                {"--opset", opset_ ? StrCat(*opset_) : ""}},
               &words);
    if (finds_sensitive_) words.push_back("--find-sensitive");
    if (allow_unsupported_) words.push_back("--allow-unsupported");
    if (check_ != "auto") words.push_back(check_ == "yes" ? "--check" : "--no-check");
    words.insert(words.end(), {"--", model_});
    if (!weights_.empty()) words.push_back(weights_);
    BecomePython("export", "caffe.onnx", std::move(words));
  }

 private:
  void TakeFolder() {
    if (!ModelFolder::Is(model_)) return;
    const ModelFolder folder(model_);
    if (weights_.empty()) weights_ = folder.Weights();
    if (output_.empty()) output_ = model_ + "/model.onnx";
    model_ = folder.deploy();
  }

  std::string model_, weights_, output_, inputs_, profile_, detection_;
  std::string int8_, keep_float_;
  std::string check_ = "auto", tolerance_ = "1e-5";
  std::optional<int> opset_, batch_;
  bool is_onnx_ = true, lists_profiles_ = false, allow_unsupported_ = false;
  bool finds_sensitive_ = false;
};

const CommandRegistrar<Export> export_registrar(
    "export",
    {.purpose = Purpose::kConvert,
     .summary = "write a net as an ONNX model",
     .about =
         "Writes a net for inference as an ONNX model, and compares the outputs of onnxruntime "
         "with the net's; a model that differs is not written. Needs Python with packages "
         "onnx and, to compare, onnxruntime; it says how to install those that are missing.",
     .examples =
         "caffe export --onnx deploy.prototxt --weights net.caffemodel --output net.onnx\n"
         "caffe export --onnx deploy.prototxt --output net.onnx --opset 17 --detection raw\n"
         "caffe export --onnx deploy.prototxt --output net.onnx --profile rknn2 --batch 1\n"
         "caffe export --profiles"});

}  // namespace
}  // namespace caffe::tools
