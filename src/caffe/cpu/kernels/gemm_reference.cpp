// Matrix products by definition, in any type. Test oracle and fallback.
#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// A triple loop; accumulates in the type's arithmetic.
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

// For 8-bit data a; quantizes the weights b.
void GemmNumbers(const ops::Gemm& op, const KernelContext& ctx) {
  const TensorView &a = ctx.input(op.kA), &b = ctx.input(op.kB), &c = ctx.output(0);
  const int64_t a_row = op.transpose_a ? 1 : op.inner, a_inner = op.transpose_a ? op.rows : 1;
  const int64_t b_inner = op.transpose_b ? 1 : op.columns, b_column = op.transpose_b ? op.inner : 1;
  const auto multiply = [&]<typename T>(TypeTag<T>, int64_t k) {
    std::vector<int8_t> numbers(op.inner);
    const float scale =
        QuantizeRow(b.as<const float>() + k * b_column, op.inner, b_inner, numbers.data());
    const float factor = ChannelFactor(a.scale, scale, 1);
    const auto bias = static_cast<float>(ElementOr(ctx, op.kBias, k, 0));
    for (int64_t r = 0; r < op.rows; ++r) {
      int32_t sum = 0;
      for (int64_t i = 0; i < op.inner; ++i)
        sum += a.as<const T>()[r * a_row + i * a_inner] * numbers[i];
      const float value = static_cast<float>(sum) * factor + bias;
      const int64_t element = r * op.columns + k;
      StoreNumber(c, element, ApplyEpilogue(ctx, op.epilogue, k, element, value));
    }
  };
  ParallelFor(op.columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      a.dtype == DType::kUInt8 ? multiply(TypeTag<uint8_t>{}, k) : multiply(TypeTag<int8_t>{}, k);
  });
}

KernelOrRefusal MakeGemmNumbers(const ops::Gemm& op, const KernelRequest&) {
  return Kernel{"", [op](const KernelContext& ctx) { GemmNumbers(op, ctx); }};
}

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

// For 8-bit factors: y = sum * factor, where no products are added up.
template <typename A, typename B>
void MultiplyNumbers(const ops::BatchedGemm& op, const KernelContext& ctx) {
  const TensorView &a = ctx.input(op.kA), &b = ctx.input(op.kB), &c = ctx.output(0);
  const int64_t a_row = op.transpose_a ? 1 : op.inner, a_inner = op.transpose_a ? op.rows : 1;
  const int64_t b_inner = op.transpose_b ? 1 : op.columns, b_column = op.transpose_b ? op.inner : 1;
  const float factor = ChannelFactor(a.scale, b.scale, 1);
  ParallelFor(op.items() * op.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const ops::MatrixPair pair = PairAt(op, 0, op.batch.size(), i / op.rows);
      const int64_t row = i % op.rows;
      for (int64_t k = 0; k < op.columns; ++k) {
        const A* of_a = a.as<const A>() + pair.a * op.rows * op.inner + row * a_row;
        const B* of_b = b.as<const B>() + pair.b * op.inner * op.columns + k * b_column;
        int32_t sum = 0;
        for (int64_t s = 0; s < op.inner; ++s) sum += of_a[s * a_inner] * of_b[s * b_inner];
        StoreNumber(c, (pair.c * op.rows + row) * op.columns + k, static_cast<float>(sum) * factor);
      }
    }
  });
}

void BatchedGemmNumbers(const ops::BatchedGemm& op, const KernelContext& ctx) {
  const bool a = ctx.input(op.kA).dtype == DType::kUInt8;
  const bool b = ctx.input(op.kB).dtype == DType::kUInt8;
  if (a && b) return MultiplyNumbers<uint8_t, uint8_t>(op, ctx);
  if (a) return MultiplyNumbers<uint8_t, int8_t>(op, ctx);
  if (b) return MultiplyNumbers<int8_t, uint8_t>(op, ctx);
  MultiplyNumbers<int8_t, int8_t>(op, ctx);
}

KernelOrRefusal MakeBatchedGemmNumbers(const ops::BatchedGemm& op, const KernelRequest&) {
  return Kernel{"", [op](const KernelContext& ctx) { BatchedGemmNumbers(op, ctx); }};
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BatchedGemm, BatchedGemmReference);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Gemm, GemmReference, FusesAny);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-int8-reference",
                              KernelRank::kReference, MakeGemmNumbers, Int8Traits(FusesNumbers));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::BatchedGemm, "batched-gemm-int8-reference",
                              KernelRank::kReference, MakeBatchedGemmNumbers,
                              ops::Int8PairsTraits());

}  // namespace
}  // namespace caffe::cpu
