// caffe import: converts a net from another program's format.
#include <string>
#include <vector>

#include "tools/caffe/command.hpp"
#include "tools/caffe/python_program.hpp"

namespace caffe::tools {
namespace {

// Passes the options to the package caffe.onnx (python/caffe/onnx), which has the readers.
class Import : public Command {
 public:
  explicit Import(CLI::App& app) {
    app.add_option("MODEL", model_, "The ONNX file")->required();
    app.add_flag("--onnx", is_onnx_, "Read an ONNX model; there is no other format yet");
    app.add_option("--output", output_,
                   "The net to write (.prototxt where it has no extension); its weights go into "
                   "NET.caffemodel next to it")
        ->type_name("NET.prototxt")
        ->required();
    app.add_option("--shape", shapes_, "Shape of an input that has none in the model")
        ->type_name("INPUT=N,C,H,W")
        ->default_str("");
    app.add_option("--preprocessing", preprocessing_,
                   "What the model's users do to images; the net then takes them as Caffe's data "
                   "layers give them, and knows its mean")
        ->type_name("torchvision|0..1|-1..1");
    app.add_option("--tolerance", tolerance_,
                   "Largest difference from onnxruntime's outputs, relative to the largest number")
        ->type_name("X")
        ->check(CLI::Validator(CLI::Number).description(""));
  }

  void Run() override {
    std::vector<std::string> words = {"import", model_,        "--output",
                                      output_,  "--tolerance", tolerance_};
    for (const std::string& shape : shapes_) words.insert(words.end(), {"--shape", shape});
    if (!preprocessing_.empty())
      words.push_back("--preprocessing=" + preprocessing_);  // "-1..1" must not look like a flag
    BecomePython("import", "caffe.onnx", std::move(words));
  }

 private:
  std::string model_, output_, preprocessing_, tolerance_ = "1e-4";
  std::vector<std::string> shapes_;
  bool is_onnx_ = true;
};

const CommandRegistrar<Import> import_registrar(
    "import",
    {.summary = "make a net of an ONNX model",
     .about = "Makes a net for inference of an ONNX model, and compares its outputs with those of "
              "onnxruntime; a net that differs is not written. Nodes that no layer can express are "
              "named. Needs Python with packages onnx and onnxruntime (pip install onnx "
              "onnxruntime).",
     .examples =
         "caffe import --onnx resnet18.onnx --output resnet18.prototxt --preprocessing "
         "torchvision\n"
         "caffe import --onnx model.onnx --output model.prototxt --shape input=1,3,224,224"});

}  // namespace
}  // namespace caffe::tools
