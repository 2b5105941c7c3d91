// Measures kernels on synthetic operands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe {

// A step without its net.
struct TimedStep {
  struct Operand : OperandDesc {
    // For labels, indices and masks: filled with zeros, which are always valid. Others are noise.
    bool is_exact = false;
    // Offset in the arena: operands of a step overlap as in the plan. -1: overlaps no other
    // operand.
    int64_t arena_offset = -1;
  };
  std::string op;  // with its attributes
  Kernel kernel;
  std::vector<Operand> inputs, outputs;
  OperandSet accumulated;  // outputs that are added to
  // True if the other steps of its plan evict its operands from the caches.
  bool is_cold = false;
};

// `node` must have gone through all passes. A host call cannot be timed.
TimedStep TimedStepOf(const Node& node);

// One line that is equal for steps that take the same time on one machine: kernel, op, operands.
std::string KeyOf(const TimedStep& step);

// Returns the time of the fastest of several runs, in seconds. Allocates the operands meanwhile.
double MeasureSeconds(const TimedStep& step, Device& device);

}  // namespace caffe
