// The ops of a plan, by name.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/fused.hpp"

namespace caffe::testing {

// The name of an op; of a region "Conv+ChannelStatistics", after its members.
inline std::string NameOf(const Op& op) {
  const auto* region = op.As<ops::Fused>();
  if (region == nullptr) return std::string(op.name());
  std::string name;
  for (const ops::Fused::Member& member : region->members)
    name += (name.empty() ? "" : "+") + std::string(member.op.name());
  return name;
}

// The first layer of each node of this op, in the order of execution.
inline std::vector<std::string> LayersOf(const Net& net, std::string_view op) {
  std::vector<std::string> layers;
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (NameOf(node->op) == op) layers.push_back(net.graph().LayerName(node->layers.front()));
  }
  return layers;
}

inline int CountOps(const Net& net, std::string_view op) {
  const std::vector<Node*> nodes = net.graph().ScheduledNodes();
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(),
                                        [op](const Node* node) { return NameOf(node->op) == op; }));
}

}  // namespace caffe::testing
