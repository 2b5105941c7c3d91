// caffe evaluate: reports what a model gets wrong on its test data.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/model_folder.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/python_program.hpp"

namespace caffe::tools {
namespace {

// Passes the options to package caffe.evaluation (python/caffe/evaluation), which does the work.
class Evaluate : public Command {
 public:
  explicit Evaluate(CLI::App& app) {
    AddModel(app, &model_)
        ->description("A net prototxt with a data layer of phase TEST, or a model's folder");
    AddWeights(app, &weights_);
    app.add_option("--page", page_, "Write a page with curves and the worst mistakes to this file")
        ->type_name("FILE.html")
        ->default_str("FOLDER/evaluation.html");
    app.add_option("--metrics", metrics_, "Write all figures to this file, as JSON")
        ->type_name("FILE.json")
        ->default_str("FOLDER/evaluation.json");
    app.add_option("--labels", labels_,
                   "Names of the classes: a line for each from 0 on, or a LabelMap prototxt")
        ->type_name("FILE");
    app.add_option("--scores", scores_, "The blob with the scores, where a net has several")
        ->type_name("BLOB")
        ->default_str("the last that an Accuracy or a loss reads");
    app.add_option_function<int>(
           "--worst",
           [this](int value) {
             Require(0 <= value && value <= 1000, "--worst is ", value, "; give 0 to 1000");
             worst_ = value;
           },
           "How many mistakes to show on the page")
        ->type_name("N")
        ->default_str("24");
    AddGpu(app, &gpu_, "The number of the GPU to run on");
    net_flags_.AddState(app);
    net_flags_.AddPrecision(app);
    app.add_flag("--lenient", net_flags_.lenient,
                 "Leave out, with a warning each, fields that are not Caffe's and layers of "
                 "unknown type");
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    RequireModel(model_);
    std::vector<std::string> words;
    TakeFolder(&words);
    std::string stages;
    for (const std::string& stage : net_flags_.stages)
      stages += (stages.empty() ? "" : ",") + stage;
    for (const std::string& file : SplitPaths(weights_)) AddOptions({{"--weights", file}}, &words);
    AddOptions({{"--page", page_},
                {"--metrics", metrics_},
                {"--labels", labels_},
                {"--scores", scores_},
                {"--gpu", gpu_},
                {"--stages", stages},
                {"--precision", net_flags_.precision ? Precision_Name(*net_flags_.precision) : ""},
                {"--worst", StrCat(worst_)},
                {"--level", StrCat(net_flags_.level)}},
               &words);
    if (net_flags_.lenient) words.push_back("--lenient");
    if (json_) words.push_back("--json");
    words.insert(words.end(), {"--", model_});
    BecomePython("evaluate", "caffe.evaluation", std::move(words));
  }

 private:
  // Replaces a model's folder by its files. Paths in them are relative to the folder.
  void TakeFolder(std::vector<std::string>* words) {
    if (!ModelFolder::Is(model_)) return;
    AddOptions({{"--name", model_}}, words);
    if (page_.empty()) page_ = model_ + "/evaluation.html";
    if (metrics_.empty()) metrics_ = model_ + "/evaluation.json";
    EnterFolderToTest(&model_, {&page_, &metrics_, &labels_}, &weights_);
  }

  std::string model_, weights_, page_, metrics_, labels_, scores_, gpu_;
  int worst_ = 24;
  NetFlags net_flags_;
  bool json_ = false;
};

const CommandRegistrar<Evaluate> evaluate_registrar(
    "evaluate",
    {.purpose = Purpose::kTrain,
     .summary = "say what a model gets wrong",
     .about = "Scores each record of a net's TEST data exactly once and says what the model gets "
              "wrong: for classes accuracy, precision and recall of each class, confusions and "
              "calibration; for boxes mean average precision by the rules of COCO and VOC; for "
              "masks intersection over union. The page shows the worst mistakes. Needs Python "
              "with scikit-learn, Jinja2 and Pillow, for COCO's rules pycocotools.",
     .examples = "caffe evaluate photos_model\n"
                 "caffe evaluate train_val.prototxt --weights=net.caffemodel --page=net.html\n"
                 "caffe evaluate photos_model --json"});

}  // namespace
}  // namespace caffe::tools
