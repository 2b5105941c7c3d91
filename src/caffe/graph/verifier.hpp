// Checks after each pass that the graph is still one, and that what passes have established holds.
#pragma once

#include <string_view>

#include "caffe/graph/graph.hpp"

namespace caffe {

// What holds from some pass on. That values are written once, before they are read, always does.
struct Established {
  bool accumulation = false;  // gradients with several writers are sums
  bool types = false;         // operands have the types that nodes see, which are their memory's
  bool layouts = false;       // and the layouts that ops allow
  bool liveness = false;      // somebody reads what a node makes
  bool kernels = false;       // every node has one
  bool memory = false;        // every activation has a place, which no other one takes in its life

  void Add(const Established& more) {
    accumulation |= more.accumulation, liveness |= more.liveness;
    types |= more.types, layouts |= more.layouts, kernels |= more.kernels, memory |= more.memory;
  }
};

// Throws InternalError naming the pass, the node and the broken rule.
void VerifyGraph(const Graph& graph, std::string_view after_pass,
                 const Established& established = {});

}  // namespace caffe
