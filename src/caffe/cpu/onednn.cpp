#include "caffe/cpu/onednn.hpp"

namespace caffe::cpu {

const dnnl::engine& OneDnnEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& OneDnnStream() {
  static thread_local dnnl::stream stream(OneDnnEngine());
  return stream;
}

bool OneDnnComputes(DType dtype) {
  static const bool has_bfloat16 = __builtin_cpu_supports("avx512bf16") != 0;
  return dtype == DType::kFloat || (dtype == DType::kBFloat16 && has_bfloat16);
}

dnnl::memory::data_type OneDnnType(DType dtype) {
  CAFFE_ASSERT(dtype == DType::kFloat || dtype == DType::kBFloat16);
  return dtype == DType::kFloat ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

dnnl::memory::desc OneDnnDesc(const TensorDesc& desc) {
  const std::vector<int64_t>& dims = desc.shape.dims();
  dnnl::memory::dims strides(dims.size(), 1);
  if (desc.layout == Layout::kPlain) {
    for (int axis = static_cast<int>(dims.size()) - 2; axis >= 0; --axis) {
      strides[axis] = strides[axis + 1] * dims[axis + 1];
    }
  } else {
    strides = {dims[1] * dims[2] * dims[3], 1, dims[3] * dims[1], dims[1]};
  }
  return {dims, OneDnnType(desc.dtype), strides};
}

}  // namespace caffe::cpu
