// caffe sweep: trains a solver with many settings.
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "caffe/error.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/python_program.hpp"

namespace caffe::tools {
namespace {

namespace fs = std::filesystem;

// Passes the options to package caffe.sweep (python/caffe/sweep), which does the work.
class Sweep : public Command {
 public:
  explicit Sweep(CLI::App& app) {
    AddSolver(app, &solver_)
        ->description("A solver prototxt, the folder of a model, or the folder of a sweep");
    app.add_option("FIELD", parameters_,
                   "What varies, by paths as for --set: FIELD=VALUE,VALUE or FIELD=LOW..HIGH with "
                   ":log or :step=N; \"FIELD=... if FIELD=VALUE\" for a condition")
        ->type_name("FIELD=VALUES");
    app.add_option("--output", output_, "The folder of the sweep")
        ->type_name("FOLDER")
        ->default_str("sweep");
    app.add_option("--metric", metric_, "The output of the test net by which trials are compared")
        ->type_name("OUTPUT")
        ->default_str("that of the solver, or accuracy");
    app.add_option("--trials", trials_, "How many settings to try")
        ->type_name("N")
        ->default_str("64, or the whole grid");
    app.add_option("--jobs", jobs_, "Trials that run at a time; the cores are divided among them")
        ->type_name("N")
        ->default_str("1, or one for each GPU");
    app.add_option("--sampler", sampler_, "How settings are chosen: tpe, random, cmaes, grid")
        ->type_name("NAME")
        ->default_str("tpe, or grid for at most 64 settings");
    app.add_option("--pruner", pruner_,
                   "Which trials end early: halving, hyperband, median, or none of them")
        ->type_name("NAME");
    app.add_option("--seed", seed_, "Seed for the choice of settings and for trainings")
        ->type_name("N");
    AddGpu(app, &gpu_, "The numbers of the GPUs, separated by commas: a trial runs on one");
    net_flags_.AddPrecision(app);
    app.add_flag("--resume", resumes_, "Continue the sweep in a folder");
  }

  void Run() override {
    Require(!solver_.empty(), "give a solver: caffe sweep solver.prototxt base_lr=0.001..0.1:log");
    Require(!jobs_ || (1 <= *jobs_ && *jobs_ <= 1024), "--jobs is ", jobs_.value_or(0),
            "; give 1 to 1024");
    Require(seed_ >= 0, "--seed is ", seed_, "; give a number from 0 on");
    std::vector<std::string> words;
    AddOptions(
        {{"--program", fs::read_symlink("/proc/self/exe").string()}, {"--seed", StrCat(seed_)}},
        &words);
    std::error_code ignored;
    if (fs::exists(fs::path(solver_) / "solver.prototxt", ignored)) {
      if (output_.empty()) output_ = (fs::path(solver_) / "sweep").string();
      AddOptions({{"--working", fs::absolute(solver_).string()}}, &words);
      output_ = fs::absolute(output_).string();
      solver_ = "solver.prototxt";
    }
    std::string gpus;
    for (const int gpu : ParseGpus(gpu_)) gpus += StrCat(gpus.empty() ? "" : ",", gpu);
    AddOptions({{"--output", output_},
                {"--metric", metric_},
                {"--sampler", sampler_},
                {"--pruner", pruner_},
                {"--gpus", gpus},
                {"--precision", net_flags_.precision ? Precision_Name(*net_flags_.precision) : ""},
                {"--trials", trials_ ? StrCat(*trials_) : ""},
                {"--jobs", jobs_ ? StrCat(*jobs_) : ""}},
               &words);
    if (resumes_) words.push_back("--resume");
    words.insert(words.end(), {"--", solver_});
    words.insert(words.end(), parameters_.begin(), parameters_.end());
    BecomePython("sweep", "caffe.sweep", std::move(words));
  }

 private:
  std::string solver_, output_, metric_, sampler_, pruner_ = "halving", gpu_;
  std::vector<std::string> parameters_;
  std::optional<int> trials_, jobs_;
  int seed_ = 1;
  bool resumes_ = false;
  NetFlags net_flags_;
};

const CommandRegistrar<Sweep> sweep_registrar(
    "sweep",
    {.purpose = Purpose::kTrain,
     .summary = "train a solver with many settings",
     .about = "Tries settings of a solver and its net, each in a training of its own, and says "
              "which are best. Optuna chooses the settings; trainings that fall behind end early, "
              "with a snapshot from which they may continue. After Ctrl-C or a crash the same "
              "command continues; further processes with the same command join in. Needs Python "
              "with the package optuna.",
     .examples = "caffe sweep solver.prototxt base_lr=0.001..0.1:log momentum=0.8,0.9,0.95\n"
                 "caffe sweep photos_model type=SGD,AdamW \"momentum=0.8..0.99 if type=SGD\" "
                 "--jobs=2\n"
                 "caffe sweep sweep           # shows the results\n"
                 "caffe sweep sweep --resume --trials=128"});

}  // namespace
}  // namespace caffe::tools
