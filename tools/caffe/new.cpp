// caffe new: makes a model's folder from a folder of images.
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caffe/error.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/model_folder.hpp"
#include "tools/caffe/python_program.hpp"

namespace caffe::tools {
namespace {

// Passes the options to the package caffe.model_folder (python/caffe/model_folder), which does the
// work.
class New : public Command {
 public:
  explicit New(CLI::App& app) {
    app.add_option("IMAGES", images_,
                   "A folder with a folder of images for each class; a list; images with boxes as "
                   "VOC, COCO or YOLO have them; or folders 'images' and 'masks'")
        ->type_name("FOLDER");
    app.add_option("--output", output_, "The folder to make")
        ->type_name("FOLDER")
        ->default_str("IMAGES_model");
    app.add_option(
           "--net", net_,
           "A net of those that --nets lists, or a deploy prototxt for classification; else "
           "one for the task and size")
        ->type_name("NAME|FILE.prototxt");
    app.add_option("--from", from_,
                   "Weights to start from, or the folder of a model; layers that the net does not "
                   "have are ignored")
        ->type_name("FILE.caffemodel|FOLDER");
    app.add_option("--size", size_, "Height and width of the net's input")->type_name("PIXELS");
    app.add_option("--epochs", epochs_, "Passes over the images")->type_name("N");
    app.add_option("--batch", batch_, "Images that are trained on together")->type_name("N");
    app.add_option_function<std::string>(
           "--val",
           [this](const std::string& text) {
             Require(text.size() > 1 && text.ends_with('%'), "--val is '", text,
                     "'; give a share of the images, as in 15%");
             val_ = text.substr(0, text.size() - 1);
           },
           "Share of the images that is kept for testing, where the set does not say itself")
        ->type_name("N%")
        ->default_str("15%");
    app.add_option("--seed", seed_, "Seed for this choice and for training")->type_name("N");
    app.add_flag("--nets", lists_nets_, "List the available nets");
  }

  void Run() override {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    std::vector<std::string> words;
    AddOptions({{"--program", program}, {"--seed", StrCat(seed_)}}, &words);
    if (lists_nets_) {
      words.push_back("--nets");
      BecomePython("new", "caffe.model_folder", std::move(words));
    }
    Require(!images_.empty(), "give the folder of the images: caffe new photos");
    const std::string weights = ModelFolder::Is(from_) ? ModelFolder(from_).Weights() : from_;
    AddOptions({{"--output", output_},
                {"--net", net_},
                {"--from", weights},
                {"--val", val_},
                {"--size", size_ ? StrCat(*size_) : ""},
                {"--batch", batch_ ? StrCat(*batch_) : ""},
                {"--epochs", epochs_ ? StrCat(*epochs_) : ""}},
               &words);
    words.insert(words.end(), {"--", images_});
    BecomePython("new", "caffe.model_folder", std::move(words));
  }

 private:
  std::string images_, output_, net_, from_, val_;
  std::optional<int> size_, batch_, epochs_;
  int seed_ = 1;
  bool lists_nets_ = false;
};

const CommandRegistrar<New> new_registrar(
    "new",
    {.purpose = Purpose::kTrain,
     .summary = "make a model from a folder of images",
     .about = "Imports images, chooses a net for what they are (classes, boxes or masks) and for "
              "their size, and writes the net, its solver and all that training needs into one "
              "folder, which caffe train, classify, detect and export take. Needs Python "
              "with Pillow.",
     .examples = "caffe new photos\n"
                 "caffe new photos --net=resnet50 --from=resnet50.caffemodel --output=flowers\n"
                 "caffe new --nets"});

}  // namespace
}  // namespace caffe::tools
