// Products of many pairs of matrices: by definition, and by oneDNN.
#include <algorithm>

#include "caffe/cpu/onednn.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// One pair: c = or += op(a) op(b), in the arithmetic of the factors' type.
template <typename A, typename C>
void MultiplyPair(const ops::BatchedGemm& op, const A* a, const A* b, bool adds, C* c) {
  using Sum = Accum<A>;
  const int64_t a_row = op.transpose_a ? 1 : op.inner, a_inner = op.transpose_a ? op.rows : 1;
  const int64_t b_inner = op.transpose_b ? 1 : op.columns, b_column = op.transpose_b ? op.inner : 1;
  ParallelFor(op.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t k = 0; k < op.columns; ++k) {
        C& out = c[r * op.columns + k];
        Sum sum = adds ? static_cast<Sum>(static_cast<Accum<C>>(out)) : Sum(0);
        for (int64_t i = 0; i < op.inner; ++i) {
          sum += static_cast<Sum>(a[r * a_row + i * a_inner]) *
                 static_cast<Sum>(b[i * b_inner + k * b_column]);
        }
        out = C(sum);
      }
    }
  });
}

void BatchedGemmReference(const ops::BatchedGemm& op, const KernelContext& ctx) {
  VisitFloat(ctx.input(0).dtype, [&]<typename A>(TypeTag<A>) {
    VisitFloat(ctx.output(0).dtype, [&]<typename C>(TypeTag<C>) {
      if (op.items() == 0 && !ctx.accumulates(0)) {
        std::fill_n(ctx.output(0).as<C>(), ctx.output(0).count(), C(0.0f));
      }
      for (int64_t place = 0; place < op.items(); ++place) {
        const ops::MatrixPair pair = PairAt(op, 0, op.batch.size(), place);
        MultiplyPair(op, ctx.input(op.kA).as<const A>() + pair.a * op.rows * op.inner,
                     ctx.input(op.kB).as<const A>() + pair.b * op.inner * op.columns,
                     pair.adds || ctx.accumulates(0),
                     ctx.output(0).as<C>() + pair.c * op.rows * op.columns);
      }
    });
  });
}

KernelOrRefusal MakeBatchedMatmul(const ops::BatchedGemm& op, const KernelRequest& request) {
  if (op.items() * op.rows * op.columns == 0 || op.inner == 0) return Refusal{"an empty product"};
  const DType type = request.inputs[op.kA].dtype, result = request.outputs[0].dtype;
  if (request.inputs[op.kB].dtype != type) return Refusal{"factors of two types"};
  if (result != type && result != DType::kFloat)
    return Refusal{"a result neither of the factors' type nor float"};
  const size_t outer = FirstFreeAxis(op);  // oneDNN computes the batch of the axes from here on
  const auto inner_axes = [&](const std::vector<int64_t>& numbers) {
    return dnnl::memory::dims(numbers.begin() + static_cast<ptrdiff_t>(outer), numbers.end());
  };
  try {
    const OneDnnProduct::Shape shape{.rows = op.rows,
                                     .columns = op.columns,
                                     .inner = op.inner,
                                     .transpose_a = op.transpose_a,
                                     .transpose_b = op.transpose_b,
                                     .factors = type,
                                     .result = result,
                                     .batch = inner_axes(op.batch),
                                     .a_steps = inner_axes(op.a_steps),
                                     .b_steps = inner_axes(op.b_steps),
                                     .c_steps = inner_axes(op.c_steps)};
    auto product = std::make_shared<OneDnnProductOrSum>(shape);
    const auto run = [product, op, outer](const KernelContext& ctx) {
      for (int64_t place = 0; place < Places(op, 0, outer); ++place) {
        const ops::MatrixPair pair = PairAt(op, 0, outer, place);
        product->Run(pair.adds || ctx.accumulates(0),
                     ops::MatrixAt(ctx.input(op.kA), pair.a, op.rows, op.inner),
                     ops::MatrixAt(ctx.input(op.kB), pair.b, op.inner, op.columns), nullptr,
                     ops::MatrixAt(ctx.output(0), pair.c, op.rows, op.columns), ctx.workspace);
      }
    };
    return Kernel{"", run, product->workspace_bytes()};
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BatchedGemm, BatchedGemmReference);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::BatchedGemm, "batched-gemm-onednn",
                              KernelRank::kBest, MakeBatchedMatmul,
                              {.signatures = OneDnnSignatures()});

}  // namespace
}  // namespace caffe::cpu
