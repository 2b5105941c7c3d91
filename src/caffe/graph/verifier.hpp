// Checks after each pass that the graph is still one: what is legal at which stage.
#pragma once

#include <string_view>

#include "caffe/graph/graph.hpp"

namespace caffe {

// Throws InternalError naming the pass, the node and the broken rule.
void VerifyGraph(const Graph& graph, std::string_view after_pass);

}  // namespace caffe
