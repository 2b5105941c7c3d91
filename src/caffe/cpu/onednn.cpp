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

void OneDnnPrimitive::AddOperand(int dnnl_argument, const dnnl::memory::desc& desc) {
  memories_.emplace_back(desc, OneDnnEngine(), nullptr);
  arguments_.push_back({dnnl_argument, memories_.back().get()});
}

void OneDnnPrimitive::SetOperand(int index, void* data) {
  dnnl::memory& memory = memories_[index];
  if (memory.get_data_handle() != data) memory.set_data_handle(data);
}

void OneDnnPrimitive::Run() {
  const auto status =
      dnnl_primitive_execute(primitive_.get(), OneDnnStream().get(),
                             static_cast<int>(arguments_.size()), arguments_.data());
  CAFFE_ASSERT(status == dnnl_success, "oneDNN status ", static_cast<int>(status));
}

OneDnnPrimitive MakeOneDnnReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                                  bool accumulates, size_t* scratchpad_bytes) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulates) {
    dnnl::post_ops post;
    post.append_sum(1.0f);
    attributes.set_post_ops(post);
  }
  const dnnl::reorder::primitive_desc description(OneDnnEngine(), from, OneDnnEngine(), to,
                                                  attributes);
  OneDnnPrimitive primitive{dnnl::reorder(description)};
  primitive.AddOperand(DNNL_ARG_FROM, from);
  primitive.AddOperand(DNNL_ARG_TO, to);
  primitive.AddOperand(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
  *scratchpad_bytes = description.scratchpad_desc().get_size();
  return primitive;
}

}  // namespace caffe::cpu
