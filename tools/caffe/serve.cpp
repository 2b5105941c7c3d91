// caffe serve: answers requests for models over HTTP.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "caffe/error.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/model_folder.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/python_program.hpp"

namespace caffe::tools {
namespace {

namespace fs = std::filesystem;

// Passes the options to package caffe.serving (python/caffe/serving), which does the work.
class Serve : public Command {
 public:
  explicit Serve(CLI::App& app) {
    app.add_option("MODEL", models_,
                   "A model's folder, or a deploy.prototxt next to weights of the same name; "
                   "NAME=MODEL gives it a name")
        ->type_name("[NAME=]MODEL");
    AddWeights(app, &weights_);
    app.add_option("--labels", labels_,
                   "Names of the classes: a line for each from 0 on, or a LabelMap prototxt")
        ->type_name("FILE");
    app.add_option("--host", host_, "The address to listen on; 0.0.0.0 is all of this machine")
        ->type_name("ADDRESS");
    AddNumber(app, "--port", &port_, 0, 65535, "The port to listen on; 0 chooses a free one");
    app.add_option("--token", token_,
                   "What clients must send as Authorization: Bearer TOKEN; better given in the "
                   "environment variable CAFFE_SERVE_TOKEN")
        ->type_name("TOKEN")
        ->default_str("none");
    AddNumber(app, "--max_batch", &max_batch_, 1, 4096, "The most items to compute together");
    AddNumber(app, "--max_delay_ms", &max_delay_, 0, 60000,
              "How long to wait for further requests before less than a whole batch is computed");
    AddNumber(app, "--max_queue", &max_queue_, 1, 1000000,
              "The most requests that may wait for a model");
    AddNumber(app, "--max_request_mb", &max_request_, 1, 65536,
              "The largest request, in 1024 x 1024 bytes");
    AddNumber(app, "--instances", &instances_, 1, 1024,
              "Batches of a model that are computed at a time; the cores are divided among them");
    AddGpu(app, &gpu_, "The number of the GPU to run on");
    net_flags_.AddPrecision(app);
  }

  void Run() override {
    Require(!models_.empty(), "give the folder of a model: caffe serve photos_model");
    Require(
        models_.size() == 1 || (weights_.empty() && labels_.empty()),
        "--weights and --labels are for one model, and ", models_.size(),
        " are given; give folders, or put the weights of each net next to it under its name, as "
        "cats.caffemodel for cats.prototxt");
    std::vector<std::string> words;
    for (const std::string& model : models_) AddModelWords(model, &words);
    AddOptions({{"--host", host_},
                {"--token", token_},
                {"--precision", net_flags_.precision ? Precision_Name(*net_flags_.precision) : ""},
                {"--port", StrCat(port_)},
                {"--max_batch", StrCat(max_batch_)},
                {"--max_delay_ms", StrCat(max_delay_)},
                {"--max_queue", StrCat(max_queue_)},
                {"--max_request_mb", StrCat(max_request_)},
                {"--instances", StrCat(instances_)}},
               &words);
    if (const std::vector<int> gpus = ParseGpus(gpu_); !gpus.empty()) {
      Require(gpus.size() == 1, "--gpu is '", gpu_, "'; give the number of one GPU");
      AddOptions({{"--gpu", StrCat(gpus[0])}}, &words);
    }
    DivideCores();
    BecomePython("serve", "caffe.serving", std::move(words));
  }

 private:
  static void AddNumber(CLI::App& app, const std::string& name, int* value, int least, int most,
                        const std::string& about) {
    app.add_option_function<int>(
           name,
           [=](int given) {
             Require(least <= given && given <= most, name, " is ", given, "; give ", least, " to ",
                     most);
             *value = given;
           },
           about)
        ->type_name("N")
        ->default_str(StrCat(*value));
  }

  // Name, net, weights, file of class names and file of preprocessing: each option of each model,
  // as the package pairs them by their order.
  void AddModelWords(const std::string& text, std::vector<std::string>* words) const {
    std::error_code ignored;
    const size_t equals = fs::exists(text, ignored) ? std::string::npos : text.find('=');
    const std::string path = equals == std::string::npos ? text : text.substr(equals + 1);
    std::string name = text.substr(0, equals);
    if (equals == std::string::npos) {
      const fs::path whole = fs::absolute(path, ignored).lexically_normal();
      name = (whole.has_filename() ? whole : whole.parent_path()).stem().string();
    }
    std::string net = path, weights = weights_, labels = labels_, info;
    if (ModelFolder::Is(path)) {
      const ModelFolder folder(path);
      net = folder.deploy();
      if (weights.empty()) weights = folder.Weights();
      if (labels.empty()) labels = folder.Labels();
      const fs::path file = fs::path(path) / "model_info.prototxt";
      if (fs::exists(file, ignored)) info = file.string();
    }
    Require(fs::exists(net, ignored), net, ": there is no such file or folder");
    words->insert(words->end(), {"--model=" + name, "--net=" + net, "--weights=" + weights,
                                 "--labels=" + labels, "--info=" + info});
  }

  // Each instance computes with OpenMP threads of its own.
  void DivideCores() const {
    const int threads = static_cast<int>(std::thread::hardware_concurrency()) / instances_;
    if (instances_ > 1)
      setenv("OMP_NUM_THREADS", StrCat(std::max(threads, 1)).c_str(), /*overwrite=*/0);
  }

  std::vector<std::string> models_;
  std::string weights_, labels_, host_ = "127.0.0.1", token_, gpu_;
  int port_ = 8000, max_batch_ = 16, max_delay_ = 0, max_queue_ = 256, max_request_ = 64,
      instances_ = 1;
  NetFlags net_flags_;
};

const CommandRegistrar<Serve> serve_registrar(
    "serve",
    {.purpose = Purpose::kUse,
     .summary = "answer requests for models over HTTP",
     .about =
         "Answers over HTTP by the Open Inference Protocol, version 2, as Triton and KServe "
         "do, and takes image files. Requests that come together are computed together. "
         "/metrics has figures for Prometheus. Needs Python with the packages fastapi, uvicorn, "
         "orjson and prometheus-client.",
     .examples = "caffe serve photos_model\n"
                 "caffe serve cats=cats_model dogs=dogs_model --port=8080 --max_batch=32\n"
                 "curl --data-binary @cat.jpg http://127.0.0.1:8000/v2/models/photos_model/image"});

}  // namespace
}  // namespace caffe::tools
