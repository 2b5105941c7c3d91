// The ops of a plan, by name.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"

namespace caffe::testing {

// The first layer of each node of this op, in the order of execution.
inline std::vector<std::string> LayersOf(const Net& net, std::string_view op) {
  std::vector<std::string> layers;
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (node->op.name() == op) layers.push_back(net.graph().LayerName(node->layers.front()));
  }
  return layers;
}

inline int CountOps(const Net& net, std::string_view op) {
  const std::vector<Node*> nodes = net.graph().ScheduledNodes();
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(),
                                        [op](const Node* node) { return node->op.name() == op; }));
}

}  // namespace caffe::testing
