// caffe fetch-weights: downloads the published weights of a model.
#include <filesystem>
#include <iomanip>
#include <iostream>

#include "caffe/error.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/fetch_file.hpp"
#include "tools/caffe/model_card.hpp"

namespace caffe::tools {
namespace {

void PrintModels() {
  for (const ModelCard& card : PublishedModels()) {
    const bool is_there = std::filesystem::exists(card.path());
    std::cout << std::left << std::setw(32)
              << std::filesystem::path(card.folder).filename().string()
              << (is_there ? card.path() : card.urls[0]) << "\n";
  }
}

class FetchWeights : public Command {
 public:
  explicit FetchWeights(CLI::App& app) {
    app.add_option("NAME", model_, "The model's name in models/, or its folder")->type_name("FILE");
    app.add_flag("--list", list_,
                 "List the models whose weights are published, with the file or its address");
  }

  void Run() override {
    if (list_) return PrintModels();
    Require(!model_.empty(), "give a model's name or folder; --list names those with weights");
    const ModelCard card = ReadModelCard(model_);
    const bool is_new = FetchFile(card.urls, card.checksum, card.path());
    std::cout << card.path() << (is_new ? ": downloaded" : ": already exists") << ", "
              << card.checksum.name() << " is right\n";
  }

 private:
  std::string model_;
  bool list_ = false;
};

const CommandRegistrar<FetchWeights> fetch_weights_registrar(
    "fetch-weights",
    {.purpose = Purpose::kConvert,
     .summary = "download a model's published weights",
     .about =
         "Downloads the weights whose address and SHA-1 the head of models/NAME/README.md "
         "gives, into that folder. A download that was cut off goes on where it stopped. "
         "Then `caffe classify models/NAME photo.jpg` names what a photograph shows, and `caffe "
         "new photos --from=models/NAME` makes a model with this net that begins with them.",
     .examples = "caffe fetch-weights resnet50\n"
                 "caffe fetch-weights --list"});

}  // namespace
}  // namespace caffe::tools
