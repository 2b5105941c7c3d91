// Reports on a compiled net, printed by `caffe plan` and `caffe time`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/net.hpp"
#include "caffe/plan_times.hpp"

namespace caffe {

// One step of the plan.
struct PlanStep {
  std::string layers;  // the layer it came from; several layers when fused
  bool is_backward = false;
  bool is_recomputation = false;  // repeats a step of forward to save memory
  std::string op;                 // with its attributes
  std::string kernel;
  std::vector<std::string> refusals;  // "better-kernel: why it refused"
  // Why it does not compute in the types that the prototxt asks for; empty if it does.
  std::string precision_note;
  // The candidate algorithms of the vendor library, the chosen one first; empty if there is no
  // choice.
  std::vector<std::string> algorithms;
  std::string operands;  // shapes, types and layouts of inputs -> outputs
  // Number of times that it runs in a pass, each time for some items of the batch (`operands`).
  int64_t rounds = 1;
  double bytes = 0;  // read and written in a pass
  double flops = 0;
};

// Sizes in bytes; each kind of memory is counted once. For a plan that is not allocated they are
// the expected sizes.
struct PlanMemory {
  int64_t parameter_count = 0;
  int64_t parameters = 0, gradients = 0, activations = 0, workspace = 0;
  int64_t outputs = 0;       // inputs, outputs and other blobs that outlive a run
  int64_t states = 0;        // copies of weights, and what layers carry from one run to the next
  int64_t solver_state = 0;  // of the solver that trains the net; 0 if there is none
  int64_t test_nets = 0;     // of the solver's test nets, without the weights that they share
  // Host memory, for a plan that is not allocated and whose device is the host; otherwise 0.
  int64_t program = 0;     // already resident in this process: code, libraries, the plans
  int64_t running = 0;     // the part of these that becomes resident only during a run
  int64_t read_ahead = 0;  // batches that data layers prepare before they are asked for
  int64_t databases = 0;   // memory-mapped pages of database files
  int64_t snapshot = 0;    // copies of weights or of the solver's state, while a file is written
  int64_t total() const {
    return parameters + gradients + outputs + states + activations + workspace + solver_state +
           test_nets + program + running + read_ahead + databases + snapshot;
  }
};

// One pass of the compiler.
struct PlanPass {
  std::string name;
  double seconds = 0;
  size_t nodes_before = 0, nodes_after = 0;
};

// Report on the rows of one name in the table of fusions.
struct PlanFusion {
  std::string row;                    // for CAFFE_DISABLE_PASSES
  int fired = 0;                      // steps that it fused
  std::vector<std::string> refusals;  // "layer, layer: why a kernel did not serve them"
};

CAFFE_EXPORT std::vector<PlanStep> PlanSteps(const Net& net);
// Passes in the order in which they ran.
CAFFE_EXPORT std::vector<PlanPass> PlanPasses(const Net& net);
// Fusions in the order in which they were tried.
CAFFE_EXPORT std::vector<PlanFusion> PlanFusions(const Net& net);
// `solver_states`: state tensors per parameter (1 for SGD).
CAFFE_EXPORT PlanMemory MemoryOfPlan(const Net& net, int solver_states = 0);

// Options of a report, besides its steps.
struct PlanReport {
  PlanMemory memory;
  // Also lists the time of each pass of the compiler, the nodes before and after it, and what the
  // fusions did; JSON always contains them.
  bool with_passes = false;
  std::optional<PlanTimes> times = {};  // none: not requested
};
// The table of `caffe plan`, and the same as JSON.
CAFFE_EXPORT std::string FormatPlan(const Net& net, const PlanReport& report);
CAFFE_EXPORT std::string FormatPlanJson(const Net& net, const PlanReport& report);

// A table of plans with increasing recomputation of forward in backward: memory and cost of each.
// Compiles each of them.
CAFFE_EXPORT std::string FormatTradeOffs(Net& net, int solver_states);

CAFFE_EXPORT void SetProfiling(Net& net, bool on);
// Milliseconds per run of each step, measured since profiling began, in the order of PlanSteps().
// Zero for steps that have not run.
CAFFE_EXPORT std::vector<double> StepMilliseconds(Net& net);

// Sequences of steps that a GPU replays as one launch each. They are captured in the second pass.
struct PlanCaptures {
  int stretches = 0;
  size_t nodes = 0;    // kernels, copies and fills in all sequences
  int refused = 0;     // sequences that could not be captured and run step by step
  std::string reason;  // of the last refusal
};
CAFFE_EXPORT PlanCaptures CapturesOf(Net& net);

// Times since profiling began, in layer order.
CAFFE_EXPORT std::vector<LayerTime> LayerTimes(Net& net);

}  // namespace caffe
