// What `caffe compile` writes of a net.
#pragma once

#include <string>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/plan/program.hpp"
#include "caffe/runtime/program_file.hpp"

namespace caffe {

// The forward steps of a compiled graph, with the weights that `bindings` hold; copies of weights
// must have been made. What the plan has packed for this machine's kernels goes into the file as it
// was before. Throws Unsupported, naming the layer, for what only the library can run.
runtime::ProgramFile MakeProgram(const Graph& graph, const Bindings& bindings,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs);

}  // namespace caffe
