// Wrapper of oneDNN. The only header that includes oneDNN, and the only place that knows the
// differences between its generations 2.x and 3.x.
#pragma once

#include <algorithm>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <vector>

#include "caffe/cpu/workspace_layout.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

const dnnl::engine& OneDnnEngine();
dnnl::stream& OneDnnStream();

// "oneDNN 2.6.3, instruction set 0x7": its version, and the kernels that it may choose from.
std::string OneDnnName();

// True for float, and for bfloat16 if the processor multiplies it natively.
bool OneDnnComputes(DType dtype);
// {float}, and {bfloat16} if the processor multiplies it natively; both with float sums.
std::vector<Signature> OneDnnSignatures();
// True if the processor has instructions to multiply 8-bit numbers: AVX-512 VNNI, AVX VNNI, AMX.
// ONEDNN_MAX_CPU_ISA applies.
bool OneDnnMultiplies8Bits();
// True if convolutions always add an epilogue's addend after their products, wherever the addend is
// stored: from AVX-512 on. ONEDNN_MAX_CPU_ISA applies.
bool OneDnnAddsLast();
// True if the processor has AMX. ONEDNN_MAX_CPU_ISA applies.
bool OneDnnMultipliesTiles();
// True if post-ops of a convolution can apply the epilogue: a sum, a ReLU, or a sum, then a ReLU.
bool OneDnnFuses(const ops::Epilogue& epilogue);
dnnl::memory::data_type OneDnnType(DType dtype);
// The tensor's logical dimensions with the strides of its layout; `type` replaces its own type.
dnnl::memory::desc OneDnnDesc(const TensorDesc& desc);
dnnl::memory::desc OneDnnDesc(const TensorDesc& desc, dnnl::memory::data_type type);

// Makes a primitive's description from its arguments, which both generations take in the same
// order.
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc DescribeOneDnn(const dnnl::primitive_attr& attributes,
                                                  const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {OneDnnEngine(), arguments..., attributes};
#else
  return {typename Primitive::desc(arguments...), attributes, OneDnnEngine()};
#endif
}

// The same for a gradient. `forward` describes the forward primitive.
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

// A primitive with memory objects for its operands, made once and run often. Run allocates none of
// our memory: addresses are set in place, and the argument list is an array.
class OneDnnPrimitive {
 public:
  OneDnnPrimitive() = default;
  explicit OneDnnPrimitive(dnnl::primitive primitive) : primitive_(std::move(primitive)) {}

  // Declares an operand; operands are indexed in the order of declaration.
  void AddOperand(int dnnl_argument, const dnnl::memory::desc& desc);
  void SetOperand(int index, void* data);
  int num_operands() const { return static_cast<int>(memories_.size()); }
  void Run();

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// Copies between two descriptions of one tensor; adds to the destination if `accumulates`.
OneDnnPrimitive MakeOneDnnReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                                  bool accumulates, size_t* scratchpad_bytes);

// A reorder and the scratchpad that it needs.
class ReorderStep {
 public:
  ReorderStep(const dnnl::memory::desc& from, const dnnl::memory::desc& to, bool accumulates)
      : primitive_(MakeOneDnnReorder(from, to, accumulates, &scratchpad_bytes_)) {}

  size_t scratchpad_bytes() const { return scratchpad_bytes_; }
  void Run(void* from, void* to, void* scratchpad) {
    primitive_.SetOperand(0, from);
    primitive_.SetOperand(1, to);
    primitive_.SetOperand(2, scratchpad);
    primitive_.Run();
  }

 private:
  size_t scratchpad_bytes_ = 0;
  OneDnnPrimitive primitive_;
};

// Describes the order of a tensor's elements.
std::string OneDnnOrder(const dnnl::memory::desc& desc);
// Returns how many columns a panel has if a matrix consists of panels of its columns, one after
// another. In a panel rows follow one another, in 16 bits pairs of rows, element by element. 0: the
// matrix has another order.
int64_t OneDnnPanelColumns(const dnnl::memory::desc& desc);

// Packs a matrix row by row if `packed` keeps runs of rows together; `plain` and `packed` describe
// the whole, whose rows are counted along `axis`.
std::optional<RowPacking> PackOneDnnRows(const dnnl::memory::desc& plain,
                                         const dnnl::memory::desc& packed, int axis);

// c = or += op(a) op(b) * factor + bias with row-major matrices, by oneDNN's matmul.
class OneDnnProduct {
 public:
  struct Shape {
    int64_t rows = 0, columns = 0, inner = 0;
    bool transpose_a = false, transpose_b = false;
    DType a = DType::kFloat, b = DType::kFloat, result = DType::kFloat;
    float factor = 1;             // of the sums
    bool has_bias = false;        // float, one for each column
    bool b_in_own_order = false;  // b comes in the order of packed_b(), not row by row
    // Axes of a batch, and the matrices by which a step along each moves; 0: the same one again.
    dnnl::memory::dims batch = {}, a_steps = {}, b_steps = {}, c_steps = {};
  };

  OneDnnProduct() = default;
  // Throws dnnl::error if oneDNN has no such product.
  OneDnnProduct(const Shape& shape, bool accumulates);

  size_t workspace_bytes() const { return workspace_bytes_; }
  // The rows of b, and the order in which the product reads them.
  const dnnl::memory::desc& plain_b() const { return plain_b_; }
  const dnnl::memory::desc& packed_b() const { return packed_b_; }
  void Run(void* a, void* b, void* bias, void* c, void* workspace);

 private:
  OneDnnPrimitive primitive_;
  dnnl::memory::desc plain_b_, packed_b_;
  bool has_bias_ = false;
  size_t workspace_bytes_ = 0;
};

// A product that either overwrites c or adds to it.
class OneDnnProductOrSum {
 public:
  explicit OneDnnProductOrSum(const OneDnnProduct::Shape& shape)
      : product_(shape, /*accumulates=*/false), sum_(shape, /*accumulates=*/true) {}

  const OneDnnProduct& product() const { return product_; }
  // False if the two read b in different orders.
  bool agrees_on_b() const { return product_.packed_b() == sum_.packed_b(); }
  size_t workspace_bytes() const {
    return std::max(product_.workspace_bytes(), sum_.workspace_bytes());
  }
  void Run(bool adds, void* a, void* b, void* bias, void* c, void* workspace) {
    (adds ? sum_ : product_).Run(a, b, bias, c, workspace);
  }

 private:
  OneDnnProduct product_, sum_;
};

}  // namespace caffe::cpu
