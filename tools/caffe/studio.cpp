// caffe studio: a page in the browser for data sets, models, runs and jobs.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "caffe/error.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/python_program.hpp"

namespace caffe::tools {
namespace {

// Passes the options to package caffe.studio (python/caffe/studio), which does the work.
class Studio : public Command {
 public:
  explicit Studio(CLI::App& app) {
    app.add_option("FOLDER", folder_, "The folder with images, models and runs")
        ->type_name("FOLDER")
        ->default_str("the working folder");
    app.add_option("--host", host_, "The address to listen on; 0.0.0.0 is all of this machine")
        ->type_name("ADDRESS");
    app.add_option("--port", port_, "The port to listen on; 0 chooses a free one")->type_name("N");
    app.add_option("--token", token_,
                   "What the address that opens the page holds; better given in the environment "
                   "variable CAFFE_STUDIO_TOKEN")
        ->type_name("TOKEN")
        ->default_str("a random one");
    app.add_option("--jobs", jobs_, "Jobs that run at a time")->type_name("N");
  }

  void Run() override {
    Require(0 <= port_ && port_ <= 65535, "--port is ", port_, "; give 0 to 65535");
    Require(1 <= jobs_ && jobs_ <= 1024, "--jobs is ", jobs_, "; give 1 to 1024");
    std::vector<std::string> words;
    AddOptions({{"--program", std::filesystem::read_symlink("/proc/self/exe").string()},
                {"--host", host_},
                {"--port", StrCat(port_)},
                {"--jobs", StrCat(jobs_)},
                {"--token", token_}},
               &words);
    words.insert(words.end(), {"--", folder_});
    BecomePython("studio", "caffe.studio", std::move(words));
  }

 private:
  std::string folder_ = ".", host_ = "127.0.0.1", token_;
  int port_ = 8050, jobs_ = 1;
};

const CommandRegistrar<Studio> studio_registrar(
    "studio",
    {.purpose = Purpose::kTrain,
     .summary = "show data, models and runs in the browser",
     .about = "Serves a page for the data sets, models, training runs and jobs of a folder: live "
              "curves, comparisons, images, plans, answers of models, and a queue of trainings. "
              "It listens on this machine only and needs no network. Open the address that it "
              "prints. Needs Python with the packages nicegui and orjson.",
     .examples = "caffe studio\n"
                 "caffe studio /data/experiments --port=9000 --jobs=2"});

}  // namespace
}  // namespace caffe::tools
