// Checks after each pass that the graph is valid and that the properties of earlier passes hold.
#pragma once

#include <string_view>

#include "caffe/graph/graph.hpp"

namespace caffe {

// Properties that hold from some pass on. It always holds that values are written once, before they
// are read.
struct Established {
  bool accumulation = false;  // gradients with several writers are sums
  bool types = false;         // nodes see operands in their stored types
  bool layouts = false;       // and the layouts that ops allow
  bool liveness = false;      // every node has a reader
  bool kernels = false;       // every node has a kernel
  bool memory = false;        // no other value uses an activation's memory in its lifetime

  void Add(const Established& more) {
    accumulation |= more.accumulation, liveness |= more.liveness;
    types |= more.types, layouts |= more.layouts, kernels |= more.kernels, memory |= more.memory;
  }
};

// Throws InternalError naming the pass, the node and the violated property.
void VerifyGraph(const Graph& graph, std::string_view after_pass,
                 const Established& established = {});

}  // namespace caffe
