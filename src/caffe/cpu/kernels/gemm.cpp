#include "caffe/ops/gemm.hpp"

#include "caffe/cpu/onednn.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// The plain triple loop, accumulating in the type's arithmetic.
void GemmReference(const ops::Gemm& op, const KernelContext& ctx) {
  const auto visit = [&]<typename A, typename C>(TypeTag<A>, TypeTag<C>) {
    const A* a = ctx.input(0).as<const A>();
    const A* b = ctx.input(1).as<const A>();
    C* c = ctx.output(0).as<C>();
    using Sum = Accum<A>;
    const int64_t a_row = op.transpose_a ? 1 : op.inner, a_inner = op.transpose_a ? op.rows : 1;
    const int64_t b_inner = op.transpose_b ? 1 : op.columns, b_column = op.transpose_b ? op.inner : 1;
    const bool accumulates = ctx.accumulates(0);
    ParallelFor(op.rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t k = 0; k < op.columns; ++k) {
          Sum sum = 0;
          for (int64_t i = 0; i < op.inner; ++i) {
            sum += static_cast<Sum>(a[r * a_row + i * a_inner]) *
                   static_cast<Sum>(b[i * b_inner + k * b_column]);
          }
          if (ctx.has_input(2)) {
            VisitFloat(ctx.input(2).dtype, [&]<typename B>(TypeTag<B>) {
              sum += static_cast<Sum>(ctx.input(2).as<const B>()[k]);
            });
          }
          C& out = c[r * op.columns + k];
          out = C(accumulates ? sum + static_cast<Sum>(static_cast<Accum<C>>(out)) : sum);
        }
      }
    });
  };
  VisitFloat(ctx.input(0).dtype, [&]<typename A>(TypeTag<A> a) {
    VisitFloat(ctx.output(0).dtype, [&]<typename C>(TypeTag<C> c) { visit(a, c); });
  });
}

CAFFE_CPU_CLONES void AddToRows(const float* bias, int64_t columns, float* c, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < columns; ++k) c[r * columns + k] += bias[k];
  }
}

KernelOrRefusal MakeSgemm(const ops::Gemm&, const KernelRequest& request) {
  for (const OperandDesc& operand : request.inputs) {
    if (operand.present && operand.dtype != DType::kFloat) return Refusal{"only float operands"};
  }
  if (request.outputs[0].dtype != DType::kFloat) return Refusal{"only float results"};
  const ops::Gemm op = *request.op.As<ops::Gemm>();
  return Kernel{"", [op](const KernelContext& ctx) {
                  const char ta = op.transpose_a ? 'T' : 'N', tb = op.transpose_b ? 'T' : 'N';
                  const int64_t lda = op.transpose_a ? op.rows : op.inner;
                  const int64_t ldb = op.transpose_b ? op.inner : op.columns;
                  float* c = ctx.output(0).as<float>();
                  const auto status =
                      dnnl_sgemm(ta, tb, op.rows, op.columns, op.inner, 1.0f, ctx.input(0).as<float>(),
                                 lda, ctx.input(1).as<float>(), ldb, ctx.accumulates(0) ? 1.0f : 0.0f,
                                 c, op.columns);
                  CAFFE_ASSERT(status == dnnl_success, "dnnl_sgemm status ", static_cast<int>(status));
                  if (!ctx.has_input(2)) return;
                  const float* bias = ctx.input(2).as<float>();
                  ParallelFor(op.rows, std::max<int64_t>(1, kPointwiseGrain / op.columns),
                              [&](int64_t begin, int64_t end) {
                                AddToRows(bias, op.columns, c + begin * op.columns, end - begin);
                              });
                }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-onednn", KernelRank::kBest, MakeSgemm);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Gemm, GemmReference);

}  // namespace
}  // namespace caffe::cpu
