// caffe plan: prints the steps that a model will run and the memory that they need.
#include <glog/logging.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <vector>

#include "caffe/common.hpp"
#include "caffe/error.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/solver_position.hpp"
#include "caffe/plan_report.hpp"
#include "caffe/plan_times.hpp"
#include "caffe/scaling_plan.hpp"
#include "caffe/split_choice.hpp"
#include "caffe/training_plan.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/model_folder.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/scaling_options.hpp"

namespace caffe::tools {
namespace {

// The chip to plan for if --gpu is a number but the machine has no GPU.
constexpr const char* kAssumedChip = "H200";

// The chip to plan for; empty for this machine's GPU or CPU.
std::string DescribedChip(const std::string& gpu) {
  if (gpu.empty()) return "";
  if (gpu.find_first_not_of("0123456789") != std::string::npos) return gpu;
  try {
    if (NumGpus() > 0) return "";
    LOG(WARNING) << "This machine has no GPU: the plan is for an " << kAssumedChip;
  } catch (const DeviceError& error) {
    LOG(WARNING) << error.what() << ". The plan is for an " << kAssumedChip;
  }
  return kAssumedChip;
}

class Plan : public Command {
 public:
  explicit Plan(CLI::App& app) {
    AddModel(app, &model_)
        ->description("The net prototxt; as the first word also a solver's, or a model's folder");
    app.add_option("--solver", solver_, "A solver prototxt, whose net is planned as it trains")
        ->type_name("FILE.prototxt");
    AddGpu(app, &gpu_,
           "The GPU to plan for: its number, or a chip that need not be there, by name or compute "
           "capability: H200, A100, 9.0");
    net_flags_.AddPhase(app);
    net_flags_.AddState(app);
    net_flags_.AddForeign(app);
    net_flags_.AddPrecision(app);
    net_flags_.AddCalibration(app);
    net_flags_.AddInputs(app);
    net_flags_.AddOverrides(app, "layer[data].data_param.batch_size=16");
    net_flags_.AddMemoryLimit(app);
    app.add_flag("--times", times_,
                 "Also run each kernel by itself on made-up operands and print what an iteration "
                 "will take. Times are kept for the next plan");
    app.add_flag("--passes", passes_,
                 "Also print the time of each pass of the compiler, the nodes before and after it, "
                 "and for each fusion how often it was applied and why kernels refused it (with "
                 "--json always)");
    app.add_flag("--trade_offs", trade_offs_,
                 "Also print what less memory would cost: plans that recompute more and more of "
                 "forward in backward (see --memory_limit)");
    scaling_.Add(app);
    AddParallel(app, &parallel_);
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    EnterFolderOfSolver(solver_.empty() ? &model_ : &solver_, {&net_flags_.calibration});
    if (solver_.empty() && !model_.empty() && KindOfDefinition(model_) == DefinitionKind::kSolver)
      std::swap(model_, solver_);
    Require(!model_.empty() || !solver_.empty(),
            "plan needs --model (a net prototxt) or --solver (whose net is planned as it trains); "
            "neither is given, or its name is empty");
    Require(model_.empty() || solver_.empty(),
            "plan needs --model (a net prototxt) or --solver (whose net is planned as it trains), "
            "not both");
    NetOptions options = net_flags_.ToNetOptions(/*with_backward=*/net_flags_.phase == TRAIN);
    options.allocate = false;
    options.described_device = DescribedChip(gpu_);
    if (!gpu_.empty() && options.described_device.empty()) UseDevice(gpu_);
    if (scaling_.are_given()) return PlanScaling(options);
    Require(parallel_ == "none",
            "--parallel is auto, but not --ranks; give the number of ranks, too");
    solver_.empty() ? PlanNet(options) : PlanTraining(options);
  }

 private:
  void PlanNet(const NetOptions& options) const {
    int64_t read_ahead = 0;
    const std::unique_ptr<Net> net =
        net_flags_.MakeNet(model_, net_flags_.phase, options, &read_ahead);
    PlanReport report = {.memory = MemoryOfPlan(*net), .with_passes = passes_};
    if (times_) report.times = TimesOfPlan(*net);
    Print(*net, report, read_ahead, /*solver_states=*/0);
  }

  void PlanTraining(const NetOptions& options) const {
    int64_t read_ahead = 0;
    NetOptions of_net = options;
    const SolverParameter solver = net_flags_.ReadSolver(solver_, &of_net.file);
    WithSolverPosition(solver_, [&] {
      const TrainingPlan plan(solver, of_net,
                              [&](NetParameter* net) { read_ahead += net_flags_.PutInputs(net); });
      PlanReport report = {.memory = plan.Memory(), .with_passes = passes_};
      if (times_) report.times = plan.Times();
      Print(plan.train_net(), report, read_ahead, plan.solver_states());
    });
  }

  void PlanScaling(const NetOptions& options) {
    Require(net_flags_.phase == TRAIN,
            "--ranks predicts training, but --phase is TEST; leave out one");
    const bool are_gpus = !gpu_.empty();
    const int per_machine = scaling_.RanksPerMachine(are_gpus);
    for (const int ranks : scaling_.Ranks()) {  // reports bad flags before minutes of measuring
      Network network{.ranks_per_machine = per_machine};
      scaling_.Describe(ranks, &network);
    }
    const HostCost host = are_gpus ? HostCost{} : MeasureHostCost();
    Require(
        parallel_ == "none" || !are_gpus,
        "--parallel is auto, but layers are split over ranks on the CPU only; leave out --gpu or "
        "--parallel");
    std::vector<ScalingRow> rows, without;
    std::string splits;
    std::map<int, PlannedStep> steps;  // by threads per rank: kernels depend on them
    for (const int ranks : scaling_.Ranks()) {
      const int threads = are_gpus ? 0 : UseThreadsOfRank(std::min(ranks, per_machine));
      const auto [step, is_new] = steps.try_emplace(threads);
      if (is_new) step->second = PlanStep(options);
      const auto& [net, timeline, passes] = step->second;
      Network network = NetworkOf(*net, per_machine, host);
      scaling_.Describe(ranks, &network);
      const bool by_cost = parallel_ == "auto";
      const std::vector<SplitChoice> choices = ChooseSplits(*net, ranks, by_cost, passes);
      Require(
          !are_gpus || SplitLayersOf(choices).empty(),
          "a layer has parallel: SPLIT_OUTPUT, but layers are split over ranks on the CPU only; "
          "leave it out");
      const StepTimeline split = WithSplits(timeline, choices, ranks);
      rows.push_back(PredictRow(*net, split, network, ranks));
      if (!by_cost || json_) continue;
      without.push_back(PredictRow(*net, timeline, network, ranks));
      splits += FormatSplits(choices, ranks) + "\n";
    }
    const Net& net = *steps.begin()->second.net;
    if (!without.empty()) std::cout << FormatScaling(net, without) << "\n" << splits;
    std::cout << (json_ ? FormatScalingJson(net, rows) : FormatScaling(net, rows));
  }

  // The step of one rank.
  struct PlannedStep {
    std::shared_ptr<const Net> net;
    StepTimeline timeline;
    int passes = 1;
  };

  PlannedStep PlanStep(const NetOptions& options) const {
    const bool is_described = !options.described_device.empty();
    if (solver_.empty()) {
      const std::shared_ptr<const Net> net = net_flags_.MakeNet(model_, TRAIN, options);
      return {net, TimelineOf(*net, is_described ? RooflineOfPlan(*net) : TimesOfPlan(*net))};
    }
    NetOptions of_net = options;
    const SolverParameter solver = net_flags_.ReadSolver(solver_, &of_net.file);
    return WithSolverPosition(solver_, [&]() -> PlannedStep {
      const auto plan = std::make_shared<const TrainingPlan>(
          solver, of_net, [&](NetParameter* net) { net_flags_.PutInputs(net); });
      const Net& net = plan->train_net();
      const PlanTimes times = is_described ? plan->Roofline() : plan->Times();
      return {{plan, &net}, TimelineOf(net, times, plan->passes()), plan->passes()};
    });
  }

  // `read_ahead`: bytes read ahead by data layers that inputs replaced.
  void Print(Net& net, PlanReport report, int64_t read_ahead, int solver_states) const {
    if (report.memory.program > 0) report.memory.read_ahead += read_ahead;
    std::cout << (json_ ? FormatPlanJson(net, report) : FormatPlan(net, report));
    if (trade_offs_ && !json_) std::cout << "\n" << FormatTradeOffs(net, solver_states);
  }

  std::string model_, solver_, gpu_;
  NetFlags net_flags_;
  ScalingFlags scaling_;
  std::string parallel_ = "none";
  bool times_ = false, passes_ = false, trade_offs_ = false, json_ = false;
};

const CommandRegistrar<Plan> plan_registrar(
    "plan",
    {.purpose = Purpose::kInspect,
     .summary = "print what a model will run and how much memory it takes",
     .about = "Compiles a net without running it and prints its steps, the kernel of each "
              "and the memory that they take; with --times also how long they take. With "
              "--ranks, predicts what training on many ranks takes instead.",
     .examples = "caffe plan solver.prototxt --times\n"
                 "caffe plan train_val.prototxt --gpu=H200 --precision=bf16\n"
                 "caffe plan solver.prototxt --ranks=8,64 --bandwidth=25Gb/s --latency=30us"});

}  // namespace
}  // namespace caffe::tools
