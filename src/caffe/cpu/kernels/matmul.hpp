// Products by oneDNN's matmul.
#pragma once

#include <memory>
#include <optional>

#include "caffe/cpu/onednn.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

inline bool HasBias(const KernelRequest& request) {
  return request.inputs.size() > ops::Gemm::kBias && request.inputs[ops::Gemm::kBias].present;
}

// Why oneDNN's matmul cannot compute the product; nothing if it can.
inline std::optional<Refusal> RefuseMatmul(const ops::Gemm& op, const KernelRequest& request) {
  if (op.rows == 0 || op.columns == 0 || op.inner == 0) return Refusal{"an empty batch"};
  const OperandDesc& a = request.inputs[ops::Gemm::kA];
  const DType result = request.outputs[0].dtype;
  if (result != a.dtype && result != DType::kFloat)
    return Refusal{"a result neither of the factors' type nor float"};
  if (HasBias(request) && request.inputs[ops::Gemm::kBias].dtype != DType::kFloat)
    return Refusal{"only a float bias"};
  return std::nullopt;
}

inline OneDnnProduct::Shape ShapeOf(const ops::Gemm& op, const KernelRequest& request) {
  const DType type = request.inputs[ops::Gemm::kA].dtype;
  return {.rows = op.rows,
          .columns = op.columns,
          .inner = op.inner,
          .transpose_a = op.transpose_a,
          .transpose_b = op.transpose_b,
          .a = type,
          .b = type,
          .result = request.outputs[0].dtype,
          .has_bias = HasBias(request)};
}

inline Kernel KernelOf(const std::shared_ptr<OneDnnProductOrSum>& product, bool has_bias) {
  return {"",
          [product, has_bias](const KernelContext& ctx) {
            product->Run(ctx.accumulates(0), ctx.input(ops::Gemm::kA).data,
                         ctx.input(ops::Gemm::kB).data,
                         has_bias ? ctx.input(ops::Gemm::kBias).data : nullptr, ctx.output(0).data,
                         ctx.workspace);
          },
          product->workspace_bytes()};
}

}  // namespace caffe::cpu
