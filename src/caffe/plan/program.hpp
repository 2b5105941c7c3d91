// Program: a compiled net as a plain value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe {

class SyncedTensor;

// Steps over numbered tensors. It contains neither memory nor addresses and is immutable once
// assembled: it can be cached for shapes that come back, and bound to other memory.
struct Program {
  struct Tensor {
    std::string name;
    TensorDesc desc;
    int64_t arena_offset = -1;  // in bytes; -1: its memory is bound
    int64_t bound_offset = 0;   // in bytes, into the bound memory
    // For the items that a round of a loop uses: the tensor of all items. -1: none.
    int whole = -1;
  };

  // Steps [first, last) run in rounds; see passes/split_batch.cpp.
  struct Loop {
    size_t first = 0, last = 0;
    BatchLoop batch;
  };

  // Kernels do not get tensors without elements (no item was selected).
  enum class Work {
    kRun,
    kNothing,  // all results are empty
    kZero,     // sums over no items
  };

  struct Step {
    Kernel kernel;
    std::vector<int> inputs, outputs;  // indexes of tensors; -1: absent
    // Results that are added to the output: in every run, or in runs that request it.
    OperandSet always_accumulated, accumulated_on_request;
    Work work = Work::kRun;
    bool calls_host = false;
    Direction direction = Direction::kForward;
    int layer = 0;      // of its first layer
    int starts_at = 0;  // the layer with which it runs: `layer`, or that of its loop's first step
    int loop = -1;      // index of its loop; -1: none
    std::string layer_name;  // name of that layer
    std::string where;       // the same for errors: "layer 'fc' (InnerProduct)"
    // Parameter gradients that no later step writes.
    std::vector<int> final_gradients;
    // Final gradients of parameters that no later backward step uses.
    std::vector<int> updatable_gradients;
  };

  // A copy of weights in another form; see graph/weight_copies.hpp.
  struct Copy {
    std::vector<int> weights, results;  // tensors
    std::vector<int> sources;           // copies
    bool is_read = false;               // by steps other than those that make copies
    bool is_cast = false;               // of all elements of one parameter, in the same order
    uint64_t recipe = 0;                // a hash of WeightCopy::recipe
  };

  std::shared_ptr<Device> device;
  bool records_steps = true;  // if the device can capture
  // Copies that only other copies are made from are freed; not while training, which makes them
  // again in each run, and not for files of programs, which contain them.
  bool frees_unread_copies = false;
  int num_layers = 0;
  int64_t arena_bytes = 0, workspace_bytes = 0;
  std::vector<Tensor> tensors;  // numbered as the graph's values
  std::vector<Copy> copies;
  std::vector<Step> steps;  // step i makes copy i; after them the graph's schedule
  std::vector<Loop> loops;

  int64_t rounds(const Step& step) const {
    return step.loop < 0 ? 1 : loops[static_cast<size_t>(step.loop)].batch.rounds();
  }
};

Program::Work WorkOf(const Node& node);
// `graph` must have gone through all passes.
Program Assemble(const Graph& graph);

// Memory of a program's tensors, by index. Null for tensors in the arena.
using Bindings = std::vector<SyncedTensor*>;

}  // namespace caffe
