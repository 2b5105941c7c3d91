// oneDNN in our words. The only header that includes oneDNN, and the only place that knows how its
// generations 2.x and 3.x differ.
#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

const dnnl::engine& OneDnnEngine();
dnnl::stream& OneDnnStream();

// "oneDNN 2.6.3, instruction set 0x7": its version, and which kernels it may choose from.
std::string OneDnnName();

// True for float and, where the processor multiplies it natively, bfloat16.
bool OneDnnComputes(DType dtype);
// {float} and, where the processor multiplies it natively, {bfloat16}, both with float sums.
std::vector<Signature> OneDnnSignatures();
// Whether the processor multiplies 8-bit numbers by instructions for it: AVX-512 VNNI, AVX VNNI,
// AMX. ONEDNN_MAX_CPU_ISA counts.
bool OneDnnMultiplies8Bits();
// Whether a convolution adds what its epilogue adds after its products, wherever that lies: from
// AVX-512 on. ONEDNN_MAX_CPU_ISA counts.
bool OneDnnAddsLast();
// Whether it has AMX. ONEDNN_MAX_CPU_ISA counts.
bool OneDnnMultipliesTiles();
// Whether a convolution applies an epilogue as its post-ops: a sum, then a ReLU, or one of them.
bool OneDnnFuses(const ops::Epilogue& epilogue);
dnnl::memory::data_type OneDnnType(DType dtype);
// The tensor's logical dimensions with the strides of its layout; in another type than its own.
dnnl::memory::desc OneDnnDesc(const TensorDesc& desc);
dnnl::memory::desc OneDnnDesc(const TensorDesc& desc, dnnl::memory::data_type type);

// The description of a primitive from its arguments, which both generations take in one order.
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc DescribeOneDnn(const dnnl::primitive_attr& attributes,
                                                  const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {OneDnnEngine(), arguments..., attributes};
#else
  return {typename Primitive::desc(arguments...), attributes, OneDnnEngine()};
#endif
}

// The same of a gradient. `forward` describes the primitive whose gradient it is.
template <typename Primitive, typename Forward, typename... Arguments>
typename Primitive::primitive_desc DescribeOneDnnGradient(const dnnl::primitive_attr& attributes,
                                                          const Forward& forward,
                                                          const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {OneDnnEngine(), arguments..., forward, attributes};
#else
  return {typename Primitive::desc(arguments...), attributes, OneDnnEngine(), forward};
#endif
}

inline void AppendEltwise(dnnl::algorithm what, float alpha, float beta, dnnl::post_ops* post) {
#if DNNL_VERSION_MAJOR >= 3
  post->append_eltwise(what, alpha, beta);
#else
  post->append_eltwise(1.0f, what, alpha, beta);
#endif
}

// A primitive with its operands' memory objects, made once and run often. Run allocates nothing of
// ours: addresses are set in place, and the argument list is an array.
class OneDnnPrimitive {
 public:
  OneDnnPrimitive() = default;
  explicit OneDnnPrimitive(dnnl::primitive primitive) : primitive_(std::move(primitive)) {}

  // Declares an operand; its index is the order of declaration.
  void AddOperand(int dnnl_argument, const dnnl::memory::desc& desc);
  void SetOperand(int index, void* data);
  int num_operands() const { return static_cast<int>(memories_.size()); }
  void Run();

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// Copies between two descriptions of one tensor, adding to the destination if asked.
OneDnnPrimitive MakeOneDnnReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                                  bool accumulates, size_t* scratchpad_bytes);

// c = or += op(a) op(b) + bias, all matrices row-major: by oneDNN's matmul.
class OneDnnProduct {
 public:
  struct Shape {
    int64_t rows = 0, columns = 0, inner = 0;
    bool transpose_a = false, transpose_b = false;
    DType factors = DType::kFloat, result = DType::kFloat;
    bool has_bias = false;  // float, one for each column
  };

  OneDnnProduct() = default;
  // Throws dnnl::error where oneDNN has none.
  OneDnnProduct(const Shape& shape, bool accumulates);

  size_t workspace_bytes() const { return workspace_bytes_; }
  void Run(void* a, void* b, void* bias, void* c, void* workspace);

 private:
  OneDnnPrimitive primitive_;
  bool has_bias_ = false;
  size_t workspace_bytes_ = 0;
};

// Hands out aligned parts of a kernel's workspace.
class WorkspaceLayout {
 public:
  // Byte offset of a new part.
  size_t Add(size_t bytes) {
    const size_t offset = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

}  // namespace caffe::cpu
