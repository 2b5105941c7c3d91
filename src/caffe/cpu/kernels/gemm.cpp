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

void Sgemm(char transpose_a, char transpose_b, int64_t rows, int64_t columns, int64_t inner,
           const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c) {
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
  // x w^T with few rows (a fully connected layer): dnnl_sgemm packs all of w to use it once. The
  // transposed product w x^T reads w in place and was 2 to 4 times faster.
  const bool swaps = !op.transpose_a && op.transpose_b && op.rows * 4 <= op.columns;
  const size_t workspace = swaps ? static_cast<size_t>(op.rows * op.columns) * sizeof(float) : 0;
  return Kernel{
      "",
      [op, swaps](const KernelContext& ctx) {
        const float *a = ctx.input(0).as<float>(), *b = ctx.input(1).as<float>();
        const float* bias = ctx.has_input(2) ? ctx.input(2).as<float>() : nullptr;
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

struct MatmulState {
  OneDnnPrimitive overwrite, add;
  size_t scratchpad_offset = 0;
};

// Row-major matrix, or its transpose read from the same memory.
dnnl::memory::desc Matrix(int64_t rows, int64_t columns, bool is_transposed, DType dtype) {
  using dnnl::memory;
  return memory::desc({rows, columns}, OneDnnType(dtype),
                      is_transposed ? memory::format_tag::ba : memory::format_tag::ab);
}

dnnl::matmul::primitive_desc MatmulDesc(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                        const dnnl::memory::desc& bias, const dnnl::memory::desc& c,
                                        bool has_bias, bool accumulates) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulates) {
    dnnl::post_ops post;
    post.append_sum(1.0f);
    attributes.set_post_ops(post);
  }
#if DNNL_VERSION_MAJOR >= 3
  if (has_bias) return {OneDnnEngine(), a, b, bias, c, attributes};
  return {OneDnnEngine(), a, b, c, attributes};
#else
  if (has_bias) return {dnnl::matmul::desc(a, b, bias, c), attributes, OneDnnEngine()};
  return {dnnl::matmul::desc(a, b, c), attributes, OneDnnEngine()};
#endif
}

// For bfloat16, which dnnl_sgemm does not take.
KernelOrRefusal MakeMatmul(const ops::Gemm& op, const KernelRequest& request) {
  const DType dtype = request.inputs[0].dtype, result = request.outputs[0].dtype;
  if (dtype != DType::kBFloat16) return Refusal{"only bfloat16 operands"};
  if (!OneDnnComputes(dtype)) return Refusal{"this processor has no bfloat16 arithmetic"};
  if (result != DType::kBFloat16 && result != DType::kFloat)
    return Refusal{"only bfloat16 and float results"};
  const bool has_bias = request.inputs.size() > 2 && request.inputs[2].present;
  if (has_bias && request.inputs[2].dtype != DType::kFloat) return Refusal{"only a float bias"};
  try {
    const dnnl::memory::desc a = Matrix(op.rows, op.inner, op.transpose_a, dtype);
    const dnnl::memory::desc b = Matrix(op.inner, op.columns, op.transpose_b, dtype);
    const dnnl::memory::desc bias = Matrix(1, op.columns, false, DType::kFloat);
    const dnnl::memory::desc c = Matrix(op.rows, op.columns, false, result);
    auto state = std::make_shared<MatmulState>();
    size_t scratchpad = 0;
    for (const bool accumulates : {false, true}) {
      const auto description = MatmulDesc(a, b, bias, c, has_bias, accumulates);
      OneDnnPrimitive primitive{dnnl::matmul(description)};
      primitive.AddOperand(DNNL_ARG_SRC, a);
      primitive.AddOperand(DNNL_ARG_WEIGHTS, b);
      primitive.AddOperand(DNNL_ARG_DST, c);
      primitive.AddOperand(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
      if (has_bias) primitive.AddOperand(DNNL_ARG_BIAS, bias);
      scratchpad = std::max(scratchpad, description.scratchpad_desc().get_size());
      (accumulates ? state->add : state->overwrite) = std::move(primitive);
    }
    return Kernel{"",
                  [state, has_bias](const KernelContext& ctx) {
                    OneDnnPrimitive& primitive = ctx.accumulates(0) ? state->add : state->overwrite;
                    primitive.SetOperand(0, ctx.input(0).data);
                    primitive.SetOperand(1, ctx.input(1).data);
                    primitive.SetOperand(2, ctx.output(0).data);
                    primitive.SetOperand(3, ctx.workspace);
                    if (has_bias) primitive.SetOperand(4, ctx.input(2).data);
                    primitive.Run();
                  },
                  scratchpad};
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-onednn-sgemm", KernelRank::kBest,
                              MakeSgemm);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-onednn-matmul", KernelRank::kGood,
                              MakeMatmul);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Gemm, GemmReference);

}  // namespace
}  // namespace caffe::cpu
