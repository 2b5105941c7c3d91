// Builds the graph's first stage from layers: layer calls wired by blob names.
#pragma once

#include <memory>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/layer.hpp"

namespace caffe {

// Throws InvalidArgument for an unknown bottom (naming the nearest blob), a top that two layers
// produce, or a repeated layer name.
void BuildGraph(const std::vector<std::shared_ptr<Layer>>& layers, Graph* graph);

}  // namespace caffe
