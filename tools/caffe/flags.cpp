#include "tools/caffe/flags.hpp"

#include <algorithm>
#include <cctype>

#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/solver_factory.hpp"

DEFINE_string(
    gpu, "",
    "GPUs to train on, by number separated by commas, or 'all'; the other commands use the "
    "first. Empty: CPU. plan also takes a chip that need not be "
    "there, by name or compute capability: H200, A100, 9.0; device_query also takes "
    "several separated by commas, or 'all'.");
DEFINE_string(solver, "", "The solver prototxt (train, plan).");
DEFINE_string(
    model, "",
    "The net prototxt (test, time, plan, data-bench); test and test_detection take several, "
    "separated by commas.");
DEFINE_string(phase, "", "TRAIN or TEST (time, plan; default TRAIN).");
DEFINE_int32(level, 0, "The network level.");
DEFINE_string(stage, "", "The network stages, separated by commas.");
DEFINE_string(weights, "",
              "The .caffemodel to start from, or several separated by commas (train, test).");
DEFINE_int32(iterations, 50, "The number of iterations to run (test, time).");
DEFINE_string(precision, "",
              "Storage and arithmetic of nets that do not say themselves: fp32, fp16, bf16 or fp64 "
              "(train, test, time, plan).");
DEFINE_int64(memory_limit, 0,
             "Most MiB that training may take on each device, beyond which results of forward are "
             "computed again in backward (train, time, plan). 0: the solver's field, or no limit.");
DEFINE_bool(json, false, "Print JSON instead of a table (plan, data-bench).");

namespace caffe::tools {

Phase PhaseFromFlag() {
  if (FLAGS_phase.empty() || FLAGS_phase == "TRAIN") return TRAIN;
  if (FLAGS_phase == "TEST") return TEST;
  throw InvalidArgument("-phase is '" + FLAGS_phase + "'; use TRAIN or TEST");
}

std::vector<std::string> StagesFromFlag() {
  return SplitByComma(FLAGS_stage);
}

std::optional<Precision> PrecisionFromFlag() {
  if (FLAGS_precision.empty()) return std::nullopt;
  std::string name = FLAGS_precision;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  Precision precision;
  if (Precision_Parse(name, &precision)) return precision;
  throw InvalidArgument("-precision is '" + FLAGS_precision + "'; use fp32, fp16, bf16 or fp64");
}

// In MiB.
static int64_t MemoryLimitFromFlag() {
  Require(FLAGS_memory_limit >= 0 && FLAGS_memory_limit < int64_t{1} << 40, "-memory_limit is ",
          FLAGS_memory_limit, "; give MiB, or 0 for no limit");
  return FLAGS_memory_limit;
}

NetOptions NetOptionsFromFlags(bool with_backward) {
  NetOptions options{.keep_all = false, .with_backward = with_backward};
  options.precision = PrecisionFromFlag().value_or(FP32);
  if (with_backward) options.memory_limit = MemoryLimitFromFlag() << 20;
  return options;
}

SolverParameter SolverFromFlags() {
  Require(!FLAGS_solver.empty(), "-solver is missing; give the solver prototxt");
  SolverParameter param = ReadSolverText(FLAGS_solver);
  param.mutable_train_state()->set_level(FLAGS_level);
  for (const std::string& stage : StagesFromFlag()) param.mutable_train_state()->add_stage(stage);
  if (PrecisionFromFlag()) param.set_precision(*PrecisionFromFlag());
  if (MemoryLimitFromFlag() > 0) param.set_memory_limit(MemoryLimitFromFlag());
  return param;
}

void CheckIterations() {
  Require(FLAGS_iterations > 0, "-iterations is ", FLAGS_iterations, "; it must be at least 1");
}

}  // namespace caffe::tools
