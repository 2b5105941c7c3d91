// What the layers of old_layers.cpp tell the tests of how they were called.
#pragma once

namespace cuda_on_host {

// The thread's calls of methods of each side, of layers that have both.
struct OldLayerCalls {
  int on_gpu = 0, on_cpu = 0;
};
OldLayerCalls& CallsOfOldLayers();

// Runs each caffe_gpu_* function and its twin for processors on arrays of `count` elements, and
// returns the largest difference.
double LargestDifferenceOfGpuMath(int count);

}  // namespace cuda_on_host
