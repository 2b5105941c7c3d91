// caffe plan: the steps that a model will run and the memory that they take.
#include <glog/logging.h>

#include <iostream>

#include "caffe/common.hpp"
#include "caffe/error.hpp"
#include "caffe/plan_report.hpp"
#include "caffe/solver_factory.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/flags.hpp"

DEFINE_bool(passes, false,
            "Also print the time of each pass of the compiler, and the nodes before and after it "
            "(plan; with -json always).");

DEFINE_bool(trade_offs, false,
            "Also print what less memory would cost: plans that recompute more and more of forward "
            "in backward (plan; see -memory_limit).");

namespace caffe::tools {
namespace {

// What a machine without a GPU plans for when -gpu is a number.
constexpr const char* kAssumedChip = "H200";

// The chip that the plan is for; empty where -gpu means this machine's GPU, or the CPU.
std::string DescribedChip() {
  if (FLAGS_gpu.empty()) return "";
  if (FLAGS_gpu.find_first_not_of("0123456789") != std::string::npos) return FLAGS_gpu;
  try {
    if (NumGpus() > 0) return "";
    LOG(WARNING) << "This machine has no GPU: the plan is for an " << kAssumedChip;
  } catch (const DeviceError& error) {
    LOG(WARNING) << error.what() << ". The plan is for an " << kAssumedChip;
  }
  return kAssumedChip;
}

void Print(Net& net, int solver_states) {
  std::cout << (FLAGS_json ? FormatPlanJson(net, solver_states)
                           : FormatPlan(net, solver_states, FLAGS_passes));
  if (FLAGS_trade_offs && !FLAGS_json) std::cout << "\n" << FormatTradeOffs(net, solver_states);
}

void Plan(const std::string&) {
  Require(FLAGS_model.empty() != FLAGS_solver.empty(),
          "plan needs -model (a net prototxt) or -solver (whose net is planned as it trains), not "
          "both");
  NetOptions options = NetOptionsFromFlags(/*with_backward=*/PhaseFromFlag() == TRAIN);
  options.allocate = false;
  options.described_device = DescribedChip();
  if (!FLAGS_gpu.empty() && options.described_device.empty()) UseDevice();
  if (FLAGS_solver.empty()) {
    Net net(FLAGS_model, PhaseFromFlag(), FLAGS_level, StagesFromFlag(), options);
    return Print(net, /*solver_states=*/0);
  }
  const SolverParameter solver = SolverFromFlags();
  options.precision = solver.precision();
  options.memory_limit = solver.memory_limit() << 20;
  options.solver_states = SolverStatesPerParameter(solver);
  const std::unique_ptr<Net> net = MakeTrainNet(solver, options);
  Print(*net, options.solver_states);
}

const CommandRegistrar registrar(
    "plan", {.help = "print what a model will run and how much memory it takes", .run = Plan});

}  // namespace
}  // namespace caffe::tools
