// Makes the program that `caffe compile` writes for a net.
#pragma once

#include <string>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/plan/program.hpp"
#include "caffe/runtime/program_file.hpp"

namespace caffe {

// The forward steps of a compiled graph, with the weights in `bindings`; copies of weights must be
// up to date. Weights that the plan packed for this machine's kernels go into the file unpacked.
// Throws Unsupported, naming the layer, for steps that only the full library can run.
runtime::ProgramFile MakeProgram(const Graph& graph, const Bindings& bindings,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs);

}  // namespace caffe
