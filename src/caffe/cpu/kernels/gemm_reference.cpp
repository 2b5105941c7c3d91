// Products by their definition, in any type. The oracle and fallback.
#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/gemm.hpp"
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
    const int64_t b_inner = op.transpose_b ? 1 : op.columns,
                  b_column = op.transpose_b ? op.inner : 1;
    const bool accumulates = ctx.accumulates(0);
    ParallelFor(op.rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t k = 0; k < op.columns; ++k) {
          Sum sum = 0;
          for (int64_t i = 0; i < op.inner; ++i) {
            sum += static_cast<Sum>(a[r * a_row + i * a_inner]) *
                   static_cast<Sum>(b[i * b_inner + k * b_column]);
          }
          if (ctx.has_input(op.kBias)) {
            VisitFloat(ctx.input(op.kBias).dtype, [&]<typename B>(TypeTag<B>) {
              sum += static_cast<Sum>(ctx.input(op.kBias).as<const B>()[k]);
            });
          }
          C& out = c[r * op.columns + k];
          if (accumulates) sum += static_cast<Sum>(static_cast<Accum<C>>(out));
          out = C(ApplyEpilogue(ctx, op.epilogue, k, r * op.columns + k, sum));
        }
      }
    });
  };
  VisitFloat(ctx.input(0).dtype, [&]<typename A>(TypeTag<A> a) {
    VisitFloat(ctx.output(0).dtype, [&]<typename C>(TypeTag<C> c) { visit(a, c); });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Gemm, GemmReference, FusesAny);

}  // namespace
}  // namespace caffe::cpu
