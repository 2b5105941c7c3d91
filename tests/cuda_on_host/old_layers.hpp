// Records for the tests how the layers of old_layers.cpp were called.
#pragma once

namespace cuda_on_host {

// The thread's calls to GPU and CPU methods of layers that have both.
struct OldLayerCalls {
  int on_gpu = 0, on_cpu = 0;
};
OldLayerCalls& CallsOfOldLayers();

// Runs each caffe_gpu_* function and its CPU counterpart on arrays of `count` elements, and returns
// the largest difference.
double LargestDifferenceOfGpuMath(int count);

}  // namespace cuda_on_host
