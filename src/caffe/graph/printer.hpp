// Prints a graph with one line per node: for dumps, tests and bug reports.
#pragma once

#include <string>

#include "caffe/graph/graph.hpp"

namespace caffe {

// "%4 conv1 = Conv[kernel 5x5](%0 data, %1 conv1.0, %2 conv1.1)  64x20x24x24 float channels-last"
std::string PrintNode(const Node& node);
std::string PrintGraph(const Graph& graph);

}  // namespace caffe
