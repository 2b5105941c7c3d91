// caffe import: converts a net from another program's format.
#include <string>
#include <utility>
#include <vector>

#include "tools/caffe/command.hpp"
#include "tools/caffe/python_program.hpp"

namespace caffe::tools {
namespace {

// Passes the options to the package caffe.onnx (python/caffe/onnx), which has the readers.
class Import : public Command {
 public:
  explicit Import(CLI::App& app) {
    app.add_option("MODEL", model_,
                   "The ONNX file, or one of PyTorch: a script (.pt), a program of torch.export "
                   "(.pt2), or weights (.pth, .safetensors) with --module");
    app.add_flag("--onnx", is_onnx_, "Has no effect; the end of the file's name tells its format");
    app.add_option("--module", module_,
                   "The call that makes the module of PyTorch's weights; without MODEL, it also "
                   "loads them")
        ->type_name("PACKAGE:FUNCTION(...)");
    app.add_option("--output", output_,
                   "The net to write (.prototxt where it has no extension); its weights go into "
                   "NET.caffemodel next to it")
        ->type_name("NET.prototxt")
        ->required();
    app.add_option("--shape", shapes_,
                   "Shape of an input that has none in the model; models of PyTorch need no name")
        ->type_name("[INPUT=]N,C,H,W")
        ->default_str("");
    app.add_option("--preprocessing", preprocessing_,
                   "What the model's users do to images; the net then takes them as Caffe's data "
                   "layers give them, and knows its mean")
        ->type_name("torchvision|0..1|-1..1")
        ->check(CLI::Validator(CLI::IsMember({"torchvision", "0..1", "-1..1"})).description(""));
    app.add_option("--tolerance", tolerance_,
                   "Largest difference from onnxruntime's outputs, relative to the largest number")
        ->type_name("X")
        ->check(CLI::Validator(CLI::Number).description(""));
  }

  void Run() override {
    std::vector<std::string> words = {"import"};
    AddOptions({{"--output", output_},
                {"--tolerance", tolerance_},
                {"--module", module_},
                {"--preprocessing", preprocessing_}},
               &words);
    for (const std::string& shape : shapes_) AddOptions({{"--shape", shape}}, &words);
    if (!model_.empty()) words.insert(words.end(), {"--", model_});
    BecomePython("import", "caffe.onnx", std::move(words));
  }

 private:
  std::string model_, module_, output_, preprocessing_, tolerance_ = "1e-4";
  std::vector<std::string> shapes_;
  bool is_onnx_ = true;
};

const CommandRegistrar<Import> import_registrar(
    "import",
    {.purpose = Purpose::kConvert,
     .summary = "make a net from an ONNX or PyTorch model",
     .about =
         "Makes a net for inference from an ONNX model, and compares its outputs with those of "
         "onnxruntime; a net that differs is not written. Nodes that no layer can express are "
         "named. A model of PyTorch becomes ONNX first, by PyTorch itself. Needs Python with "
         "packages onnx and onnxruntime, and torch and onnxscript for models of PyTorch; it "
         "says how to install those that are missing.",
     .examples =
         "caffe import resnet18.onnx --output resnet18.prototxt --preprocessing torchvision\n"
         "caffe import model.onnx --output model.prototxt --shape input=1,3,224,224\n"
         "caffe import script.pt --output net --shape 1,3,224,224\n"
         "caffe import weights.pth --module torchvision.models:resnet18 --output net --shape "
         "1,3,224,224"});

}  // namespace
}  // namespace caffe::tools
