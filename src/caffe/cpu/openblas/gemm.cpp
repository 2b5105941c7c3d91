// Matrix products of doubles by OpenBLAS.
#include "caffe/ops/gemm.hpp"

#include <optional>

#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/openblas/dgemm.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// The result is divided into blocks of this size for any number of threads, and a block's sums do
// not depend on the other blocks.
constexpr int64_t kBlock = 256;

// The part, from element (row, column) on, of a matrix that is `rows` x `columns` in the product.
DoubleMatrix PartOf(const TensorView& view, bool transposed, int64_t rows, int64_t columns,
                    int64_t row, int64_t column) {
  const double* data = view.as<const double>();
  if (transposed) return {data + column * rows + row, rows, true};
  return {data + row * columns + column, columns};
}

void AddBiasAndFinish(const ops::Gemm& op, const KernelContext& ctx, int64_t row, int64_t rows,
                      int64_t column, int64_t columns) {
  const bool has_bias = ctx.has_input(op.kBias);
  if (!has_bias && op.epilogue.empty()) return;
  for (int64_t r = row; r < row + rows; ++r) {
    for (int64_t k = column; k < column + columns; ++k) {
      const int64_t i = r * op.columns + k;
      double& c = ctx.output(0).as<double>()[i];
      if (has_bias) c += ElementOf(ctx.input(op.kBias), k);
      c = ApplyEpilogue(ctx, op.epilogue, k, i, c);
    }
  }
}

void Gemm(const ops::Gemm& op, const KernelContext& ctx) {
  const int64_t across = (op.columns + kBlock - 1) / kBlock, down = (op.rows + kBlock - 1) / kBlock;
  ForBlasTasks(across * down, omp_get_max_threads(), [&](int64_t task, int64_t) {
    const int64_t row = task / across * kBlock, rows = std::min(kBlock, op.rows - row);
    const int64_t column = task % across * kBlock, columns = std::min(kBlock, op.columns - column);
    Dgemm(rows, columns, op.inner,
          PartOf(ctx.input(op.kA), op.transpose_a, op.rows, op.inner, row, 0),
          PartOf(ctx.input(op.kB), op.transpose_b, op.inner, op.columns, 0, column),
          ctx.accumulates(0), ctx.output(0).as<double>() + row * op.columns + column, op.columns);
    AddBiasAndFinish(op, ctx, row, rows, column, columns);
  });
}

void Multiply(const ops::BatchedGemm& op, const KernelContext& ctx) {
  const size_t outer = FirstFreeAxis(op), axes = op.batch.size();
  for (int64_t place = 0; place < Places(op, 0, outer); ++place) {
    const ops::MatrixPair first = PairAt(op, 0, outer, place);
    ForBlasTasks(Places(op, outer, axes), omp_get_max_threads(), [&](int64_t task, int64_t) {
      const ops::MatrixPair pair = PairAt(op, outer, axes, task);
      const double* a =
          ctx.input(op.kA).as<const double>() + (first.a + pair.a) * op.rows * op.inner;
      const double* b =
          ctx.input(op.kB).as<const double>() + (first.b + pair.b) * op.inner * op.columns;
      Dgemm(op.rows, op.columns, op.inner, {a, op.transpose_a ? op.rows : op.inner, op.transpose_a},
            {b, op.transpose_b ? op.inner : op.columns, op.transpose_b},
            first.adds || ctx.accumulates(0),
            ctx.output(0).as<double>() + (first.c + pair.c) * op.rows * op.columns, op.columns);
    });
  }
}

// The refusal of factors, or of a result, that are not doubles, or of sizes that OpenBLAS has not.
template <typename Product>
std::optional<Refusal> WhyNotDoubles(const Product& op, const KernelRequest& request) {
  for (const OperandDesc* operand :
       {&request.inputs[op.kA], &request.inputs[op.kB], &request.outputs[0]}) {
    if (operand->dtype != DType::kDouble) return Refusal{"only factors and results in double"};
  }
  if (!FitsBlas(std::max({op.rows, op.columns, op.inner})))
    return Refusal{"a matrix too large for OpenBLAS"};
  if (op.inner == 0) return Refusal{"an empty sum"};
  return std::nullopt;
}

KernelOrRefusal MakeGemm(const ops::Gemm& op, const KernelRequest& request) {
  if (const auto refusal = WhyNotDoubles(op, request)) return *refusal;
  return Kernel{"", [op](const KernelContext& ctx) { Gemm(op, ctx); }};
}

KernelOrRefusal MakeBatchedGemm(const ops::BatchedGemm& op, const KernelRequest& request) {
  if (const auto refusal = WhyNotDoubles(op, request)) return *refusal;
  if (op.items() * op.rows * op.columns == 0) return Refusal{"an empty product"};
  return Kernel{"", [op](const KernelContext& ctx) { Multiply(op, ctx); }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::BatchedGemm, "batched-gemm-openblas",
                              KernelRank::kBest, MakeBatchedGemm,
                              {.signatures = {{DType::kDouble, DType::kDouble}}});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-openblas", KernelRank::kBest,
                              MakeGemm,
                              {.signatures = {{DType::kDouble, DType::kDouble}},
                               .fuses = FusesAny});

}  // namespace
}  // namespace caffe::cpu
