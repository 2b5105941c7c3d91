// Reports on a compiled net: what `caffe plan` and `caffe time` print.
#pragma once

#include <string>
#include <vector>

#include "caffe/net.hpp"

namespace caffe {

// One step of the plan.
struct PlanStep {
  std::string layers;  // the layer it came from; several when fused
  bool is_backward = false;
  bool is_recomputation = false;  // of what forward has computed before, to save memory
  std::string op;                 // with its attributes
  std::string kernel;
  std::vector<std::string> refusals;  // "better-kernel: why it refused"
  // Why it is not computed in the types that the prototxt asks for; empty where it is.
  std::string precision_note;
  // The vendor's algorithms that could serve, the one taken first; empty where there is no choice.
  std::vector<std::string> algorithms;
  std::string operands;  // shapes, types and layouts of inputs -> outputs
  double bytes = 0;      // read and written
  double flops = 0;
};

// Bytes, each kind of memory once. Of a plan that is not allocated they are what it will take.
struct PlanMemory {
  int64_t parameter_count = 0;
  int64_t parameters = 0, gradients = 0, outputs = 0, activations = 0, workspace = 0;
  int64_t solver_state = 0;  // of the solver that trains it; 0 if there is none
  int64_t program = 0;       // what this process has resident already: code, libraries, the plan
  int64_t total() const {
    return parameters + gradients + outputs + activations + workspace + solver_state + program;
  }
};

// One pass of the compiler.
struct PlanPass {
  std::string name;
  double seconds = 0;
  size_t nodes_before = 0, nodes_after = 0;
};

std::vector<PlanStep> PlanSteps(const Net& net);
// In the order in which they ran.
std::vector<PlanPass> PlanPasses(const Net& net);
// `solver_states`: state tensors per parameter (1 for SGD).
PlanMemory MemoryOfPlan(const Net& net, int solver_states = 0);

// The table of `caffe plan`, and the same as JSON.
// `with_passes`: also the time of each pass, and the nodes before and after it; JSON always has
// them.
std::string FormatPlan(const Net& net, int solver_states, bool with_passes = false);
std::string FormatPlanJson(const Net& net, int solver_states);

// A table of plans that recompute more and more of forward in backward: what each takes, and what
// it costs. Compiles each of them.
std::string FormatTradeOffs(Net& net, int solver_states);

// Time per layer and direction in milliseconds since profiling began, in layer order.
struct LayerTime {
  std::string layer;
  double forward_ms = 0, backward_ms = 0;
};
void SetProfiling(Net& net, bool on);
std::vector<LayerTime> LayerTimes(Net& net);

}  // namespace caffe
