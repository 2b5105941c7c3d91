// Finds the nets that a fuzz target can plan and run in bounded time and memory.
#pragma once

#include <set>
#include <string>

#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/net/plan.hpp"

namespace caffe::fuzz {

// Returns whether the definition can be planned safely: it reads and writes no files, loads no
// modules, and has no lists of a million tops.
inline bool CanBePlanned(const NetParameter& net) {
  static const std::set<std::string> kWithFiles = {"Data",
                                                   "AnnotatedData",
                                                   "ImageData",
                                                   "DenseImageData",
                                                   "ImageSegData",
                                                   "ImageLabelmapData",
                                                   "HDF5Data",
                                                   "WindowData",
                                                   "VideoData",
                                                   "HDF5Output",
                                                   "InfogainLoss",
                                                   "DetectionOutput",
                                                   "DetectionEvaluate",
                                                   "Python"};
  for (const LayerParameter& layer : net.layer()) {
    if (kWithFiles.contains(layer.type())) return false;
  }
  return net.layer_size() <= 50;
}

// Returns whether a pass of the planned net is short and small.
inline bool CanBeRun(const Net& planned) {
  constexpr int64_t kMostBytes = int64_t{64} << 20;
  constexpr double kMostFlops = 2e7;
  double flops = 0;
  for (const Node* node : planned.graph().ScheduledNodes()) flops += node->Flops();
  return flops < kMostFlops && MemoryOf(planned.graph(), /*solver_states=*/2).total() < kMostBytes;
}

}  // namespace caffe::fuzz
