// oneDNN's types as ours. The only header that includes oneDNN.
#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

const dnnl::engine& OneDnnEngine();
dnnl::stream& OneDnnStream();

// True for float and, where the processor multiplies it natively, bfloat16.
bool OneDnnComputes(DType dtype);
dnnl::memory::data_type OneDnnType(DType dtype);
// The tensor's logical dimensions with the strides of its layout.
dnnl::memory::desc OneDnnDesc(const TensorDesc& desc);

}  // namespace caffe::cpu
