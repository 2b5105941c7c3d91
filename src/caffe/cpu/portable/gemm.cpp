// Matrix products with weights that are known when a program is loaded.
#include "caffe/ops/gemm.hpp"

#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/cpu/portable/panels.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

void StoreTile(const ops::Gemm& op, const KernelContext& ctx, int64_t row, int64_t rows,
               int64_t column, const float (&sums)[kTileRows][kPanel]) {
  const int64_t columns = std::min(kPanel, op.columns - column);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t k = column + j, i = (row + r) * op.columns + k;
      float value = sums[r][j];
      if (ctx.has_input(op.kBias)) value += static_cast<float>(ElementOf(ctx.input(op.kBias), k));
      ctx.output(0).as<float>()[i] = ApplyEpilogue(ctx, op.epilogue, k, i, value);
    }
  }
}

void MultiplyPacked(const ops::Gemm& op, const KernelContext& ctx) {
  const float* a = ctx.input(op.kA).as<const float>();
  const float* panels = ctx.input(op.kB).as<const float>();
  ParallelFor(NumPanels(op.columns), 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      for (int64_t row = 0; row < op.rows; row += kTileRows) {
        const int64_t rows = std::min(kTileRows, op.rows - row);
        const float* tile[kTileRows];
        for (int64_t r = 0; r < kTileRows; ++r) tile[r] = a + (row + r) * op.inner;
        float sums[kTileRows][kPanel];
        MultiplyPanel(tile, rows, panels + panel * op.inner * kPanel, op.inner, sums);
        StoreTile(op, ctx, row, rows, panel * kPanel, sums);
      }
    }
  });
}

KernelOrRefusal MakeGemm(const ops::Gemm& op, const KernelRequest& request) {
  if (!request.inputs[ops::Gemm::kB].may_be_packed) return Refusal{"factors that change"};
  if (op.transpose_a) return Refusal{"a first factor by columns"};
  if (request.outputs[0].dtype != DType::kFloat) return Refusal{"only float results"};
  PackedOperand packed;
  packed.operand = ops::Gemm::kB;
  packed.bytes = static_cast<size_t>(NumPanels(op.columns) * op.inner * kPanel) * sizeof(float);
  packed.convert = [op](const KernelContext& ctx) {
    const float* b = ctx.input(0).as<const float>();
    PackPanels(
        op.inner, op.columns,
        [&](int64_t k, int64_t column) {
          return op.transpose_b ? b[column * op.inner + k] : b[k * op.columns + column];
        },
        ctx.output(0).as<float>());
  };
  return Kernel{.run = [op](const KernelContext& ctx) { MultiplyPacked(op, ctx); },
                .packed_weights = std::move(packed)};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-panels", KernelRank::kGood,
                              MakeGemm,
                              {.signatures = {{DType::kFloat, DType::kFloat}}, .fuses = FusesAny});

}  // namespace
}  // namespace caffe::cpu
