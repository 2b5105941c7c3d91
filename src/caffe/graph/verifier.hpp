// Checks after each pass that the graph is still one, and that what passes have established holds.
#pragma once

#include <string_view>

#include "caffe/graph/graph.hpp"

namespace caffe {

// What holds from some pass on. That values are written once, before they are read, always does.
struct Established {
  bool types = false;    // operands arrive in the types that nodes ask for
  bool layouts = false;  // and in layouts that their shapes can have
  bool kernels = false;  // every node has one
  bool memory = false;   // every activation has a place

  void Add(const Established& more) {
    types |= more.types, layouts |= more.layouts, kernels |= more.kernels, memory |= more.memory;
  }
};

// Throws InternalError naming the pass, the node and the broken rule.
void VerifyGraph(const Graph& graph, std::string_view after_pass,
                 const Established& established = {});

}  // namespace caffe
