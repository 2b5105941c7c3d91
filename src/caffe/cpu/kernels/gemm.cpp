// Matrix products by oneDNN.
#include "caffe/ops/gemm.hpp"

#include <memory>

#include "caffe/core/signals_held.hpp"
#include "caffe/cpu/kernels/matmul.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

CAFFE_CPU_CLONES void AddToRows(const float* bias, int64_t columns, float* c, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < columns; ++k) c[r * columns + k] += bias[k];
  }
}

void Sgemm(char transpose_a, char transpose_b, int64_t rows, int64_t columns, int64_t inner,
           const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c) {
  const SignalsHeld held;
  const dnnl_status_t status = dnnl_sgemm(transpose_a, transpose_b, rows, columns, inner, 1.0f, a,
                                          lda, b, ldb, beta, c, columns);
  CAFFE_ASSERT(status == dnnl_success, "dnnl_sgemm status ", static_cast<int>(status));
}

// c (rows x columns) = or += the transpose of `from`, plus bias.
void StoreTransposed(const float* from, int64_t rows, int64_t columns, const float* bias,
                     bool accumulates, float* c) {
  ParallelFor(rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t k = 0; k < columns; ++k) {
        const float value = from[k * rows + r] + (bias != nullptr ? bias[k] : 0.0f);
        c[r * columns + k] = accumulates ? c[r * columns + k] + value : value;
      }
    }
  });
}

KernelOrRefusal MakeSgemm(const ops::Gemm& op, const KernelRequest& request) {
  for (const OperandDesc& operand : request.inputs) {
    if (operand.present && operand.dtype != DType::kFloat) return Refusal{"only float operands"};
  }
  if (request.outputs[0].dtype != DType::kFloat) return Refusal{"only float results"};
  // x w^T with few rows (a fully connected layer): dnnl_sgemm packs all of w and uses it only once.
  // The transposed product w x^T reads w in place and was 2 to 4 times faster.
  const bool swaps = !op.transpose_a && op.transpose_b && op.rows * 4 <= op.columns;
  const size_t workspace = swaps ? static_cast<size_t>(op.rows * op.columns) * sizeof(float) : 0;
  return Kernel{
      "",
      [op, swaps](const KernelContext& ctx) {
        const float *a = ctx.input(0).as<float>(), *b = ctx.input(1).as<float>();
        const float* bias = ctx.has_input(op.kBias) ? ctx.input(op.kBias).as<float>() : nullptr;
        float* c = ctx.output(0).as<float>();
        if (swaps) {
          float* transposed = static_cast<float*>(ctx.workspace);
          Sgemm('N', 'T', op.columns, op.rows, op.inner, b, op.inner, a, op.inner, 0, transposed);
          StoreTransposed(transposed, op.rows, op.columns, bias, ctx.accumulates(0), c);
          return;
        }
        Sgemm(op.transpose_a ? 'T' : 'N', op.transpose_b ? 'T' : 'N', op.rows, op.columns, op.inner,
              a, op.transpose_a ? op.rows : op.inner, b, op.transpose_b ? op.inner : op.columns,
              ctx.accumulates(0) ? 1.0f : 0.0f, c);
        if (bias == nullptr) return;
        ParallelFor(op.rows, std::max<int64_t>(1, kPointwiseGrain / op.columns),
                    [&](int64_t begin, int64_t end) {
                      AddToRows(bias, op.columns, c + begin * op.columns, end - begin);
                    });
      },
      workspace};
}

// For bfloat16, which dnnl_sgemm does not support.
KernelOrRefusal MakeMatmul(const ops::Gemm& op, const KernelRequest& request) {
  if (auto refusal = RefuseMatmul(op, request)) return *std::move(refusal);
  try {
    return KernelOf(std::make_shared<OneDnnProductOrSum>(ShapeOf(op, request)), HasBias(request));
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

// bfloat16 if the processor multiplies it natively; otherwise a type that no op has.
KernelTraits MatmulTraits() {
  const DType type = OneDnnComputes(DType::kBFloat16) ? DType::kBFloat16 : DType::kUInt8;
  return {.signatures = {{type, DType::kFloat}}};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-onednn-sgemm", KernelRank::kBest,
                              MakeSgemm, {.signatures = {{DType::kFloat, DType::kFloat}}});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-onednn-matmul", KernelRank::kBest,
                              MakeMatmul, MatmulTraits());

}  // namespace
}  // namespace caffe::cpu
