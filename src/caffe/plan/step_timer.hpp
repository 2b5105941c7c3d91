// What a kernel takes on operands that are made up for it.
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
    // Labels, indices, masks: zeros, which are valid for all of them. Others are noise.
    bool is_exact = false;
    // Where it lies: operands of one step overlap as these do. -1: apart from the others.
    int64_t arena_offset = -1;
  };
  std::string op;  // with its attributes
  Kernel kernel;
  std::vector<Operand> inputs, outputs;
  OperandSet accumulated;  // outputs that are added to
  // The other steps of its plan fill the processor's caches, so that it finds nothing there.
  bool is_cold = false;
};

// Of a node that all passes have seen. A call of the host cannot be timed.
TimedStep TimedStepOf(const Node& node);

// One line that is the same for steps that take the same time on one machine: kernel, op, operands.
std::string KeyOf(const TimedStep& step);

// The fastest of several runs, in seconds. Takes the memory of the operands meanwhile.
double MeasureSeconds(const TimedStep& step, Device& device);

}  // namespace caffe
