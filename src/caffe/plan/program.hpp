// Program: a compiled net as a value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe {

class SyncedTensor;

// Steps over numbered tensors. It holds no memory and no address of any, and nothing changes it
// once it is assembled: it can be kept for shapes that come back, and bound to memory anew.
struct Program {
  struct Tensor {
    std::string name;
    TensorDesc desc;
    int64_t arena_offset = -1;  // in bytes; -1: its memory is bound
    int64_t bound_offset = 0;   // in bytes, into the memory that is bound
  };

  // Tensors without elements (no item was selected) are not handed to kernels.
  enum class Work {
    kRun,
    kNothing,  // all results are empty
    kZero,     // results of nothing: sums over no items
  };

  struct Step {
    Kernel kernel;
    std::vector<int> inputs, outputs;  // tensors; -1: left out
    // Results that are added to what is there: in each run, and in runs that ask for it.
    OperandSet always_accumulated, accumulated_on_request;
    Work work = Work::kRun;
    bool calls_host = false;
    Direction direction = Direction::kForward;
    int layer = 0;           // the first that it came from
    std::string layer_name;  // of that one
    std::string where;       // the same for errors: "layer 'fc' (InnerProduct)"
    // Gradients of parameters that no later step writes.
    std::vector<int> final_gradients;
    // Final gradients of parameters that no later step of backward uses.
    std::vector<int> updatable_gradients;
  };

  // Weights in another form; see graph/weight_copies.hpp.
  struct Copy {
    std::vector<int> weights, results;  // tensors
    std::vector<int> sources;           // copies
    bool is_read = false;               // by other steps than those that make copies
  };

  std::shared_ptr<Device> device;
  bool records_steps = true;  // where the device can
  int num_layers = 0;
  int64_t arena_bytes = 0, workspace_bytes = 0;
  std::vector<Tensor> tensors;  // numbered as the graph's values
  std::vector<Copy> copies;
  std::vector<Step> steps;  // step i makes copy i; after them the graph's schedule
};

Program::Work WorkOf(const Node& node);
// Of a graph that all passes have seen.
Program Assemble(const Graph& graph);

// Memory of a program's tensors, by number. Null for those in the arena.
using Bindings = std::vector<SyncedTensor*>;

}  // namespace caffe
