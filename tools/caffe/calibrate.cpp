// caffe calibrate: measures the ranges of a net's blobs for 8-bit inference.
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

// Passes the options to package caffe.calibration (python/caffe/calibration), which does the work.
class Calibrate : public Command {
 public:
  explicit Calibrate(CLI::App& app) {
    AddModel(app, &model_)
        ->description(
            "The net prototxt, whose data layer of phase TEST gives the images: "
            "train_val.prototxt");
    AddWeights(app, &weights_);
    app.add_option("--output", output_, "The calibration file to write")->type_name("FILE.json");
    AddIterations(app, &iterations_);
    app.add_option("--method", method_, "How to clip")
        ->type_name("entropy|percentile|min-max")
        ->check(
            CLI::Validator(CLI::IsMember({"entropy", "percentile", "min-max"})).description(""));
    app.add_option("--percentile", percentile_,
                   "Percent of the numbers that method percentile does not clip")
        ->type_name("P")
        ->check(CLI::Validator(CLI::Number).description(""));
    app.add_flag("--report", reports_,
                 "Then print how far each layer that computes in 8 bits is from float, the worst "
                 "for the outputs first");
  }

  void Run() override {
    RequireModel(model_);
    EnterFolderToTest(&model_, {&output_}, &weights_);
    Require(!weights_.empty(), "--weights is missing; give the .caffemodel to calibrate");
    Require(!output_.empty(), "--output is missing; give the file to write");
    std::vector<std::string> words;
    AddOptions({{"--output", output_},
                {"--iterations", StrCat(iterations_)},
                {"--method", method_},
                {"--percentile", percentile_}},
               &words);
    if (reports_) words.push_back("--report");
    words.insert(words.end(), {"--", model_, weights_});
    BecomePython("calibrate", "caffe.calibration", std::move(words));
  }

 private:
  std::string model_, weights_, output_;
  std::string method_ = "entropy", percentile_ = "99.99";
  int iterations_ = 10;
  bool reports_ = false;
};

const CommandRegistrar<Calibrate> calibrate_registrar(
    "calibrate",
    {.purpose = Purpose::kConvert,
     .summary = "measure the ranges that a net's blobs need in 8 bits",
     .about = "Runs a net on batches of its TEST data, looks at the numbers of each blob, and "
              "writes the ranges that 8 bits should hold to a file for --precision int8 and caffe "
              "export --int8. Needs "
              "Python.",
     .examples = "caffe calibrate train_val.prototxt --weights net.caffemodel --output net.json\n"
                 "caffe calibrate train_val.prototxt --weights net.caffemodel --output net.json "
                 "--method min-max"});

}  // namespace
}  // namespace caffe::tools
