// Products with weights in the blocks that oneDNN reads fastest, made once in nets that nobody
// trains, if blocks take no more memory. With 2 to 16 rows they take 0.17 to 0.8 of the time of
// products that read weights as they are. A single row is multiplied here: oneDNN's kernels read
// memory at half the rate for it.
#include <bit>
#include <cstring>

#include "caffe/cpu/kernels/matmul.hpp"
#include "caffe/cpu/parallel.hpp"

// A separate namespace, because other files have functions with these names.
namespace caffe::cpu::gemm_blocked {
namespace {

// y[c] = the sum over k of a[k] panel[k, c].
template <int kColumns>
CAFFE_CPU_CLONES void MultiplyPanel(const float* a, const float* panel, int64_t inner, float* y) {
  float sums[kColumns] = {};
  for (int64_t k = 0; k < inner; ++k) {
    for (int c = 0; c < kColumns; ++c) sums[c] += a[k] * panel[k * kColumns + c];
  }
  std::memcpy(y, sums, sizeof(sums));
}

// The same; numbers of two rows of the panel are next to each other.
template <int kColumns>
CAFFE_CPU_CLONES void MultiplyPanel(const bfloat16* a, const bfloat16* panel, int64_t inner,
                                    float* y) {
  float sums[kColumns] = {}, odd_sums[kColumns] = {};
  const auto as_float = [](uint32_t bits) CAFFE_FORCE_INLINE { return std::bit_cast<float>(bits); };
  for (int64_t k = 0; k < inner; k += 2) {
    const auto even = static_cast<float>(a[k]);
    const auto odd = static_cast<float>(a[k + 1]);
    uint32_t pairs[kColumns];
    std::memcpy(pairs, panel + k * kColumns, sizeof(pairs));
    for (int c = 0; c < kColumns; ++c) {
      sums[c] += even * as_float(pairs[c] << 16);
      odd_sums[c] += odd * as_float(pairs[c] & 0xFFFF0000U);
    }
  }
  for (int c = 0; c < kColumns; ++c) y[c] = sums[c] + odd_sums[c];
}

// A row times the weights, panel by panel.
template <int kColumns, typename T>
void MultiplyRow(const ops::Gemm& op, const KernelContext& ctx) {
  const T *a = ctx.input(ops::Gemm::kA).as<const T>(), *b = ctx.input(ops::Gemm::kB).as<const T>();
  const float* bias =
      ctx.has_input(ops::Gemm::kBias) ? ctx.input(ops::Gemm::kBias).as<const float>() : nullptr;
  const int64_t panel_size = op.inner * kColumns, panels = op.columns / kColumns;
  ParallelFor(panels, std::max<int64_t>(1, (1 << 16) / panel_size),
              [&](int64_t begin, int64_t end) {
                for (int64_t p = begin; p < end; ++p) {
                  float sums[kColumns];
                  MultiplyPanel<kColumns>(a, b + p * panel_size, op.inner, sums);
                  const int64_t first = p * kColumns;
                  VisitFloat(ctx.output(0).dtype, [&]<typename Y>(TypeTag<Y>) {
                    Y* y = ctx.output(0).as<Y>() + first;
                    for (int64_t c = 0; c < kColumns; ++c) {
                      float sum = sums[c] + (bias == nullptr ? 0 : bias[first + c]);
                      if (ctx.accumulates(0)) sum += static_cast<float>(y[c]);
                      y[c] = Y(sum);
                    }
                  });
                }
              });
}

using SingleRow = void (*)(const ops::Gemm&, const KernelContext&);

template <typename T>
SingleRow SingleRowOf(int64_t panel_columns) {
  switch (panel_columns) {
    case 16:
      return MultiplyRow<16, T>;
    case 32:
      return MultiplyRow<32, T>;
    case 48:
      return MultiplyRow<48, T>;
    case 64:
      return MultiplyRow<64, T>;
    default:
      return nullptr;
  }
}

// Multiplies a single row by weights in this order; null if that is oneDNN's work.
SingleRow SingleRowOf(const ops::Gemm& op, DType type, const dnnl::memory::desc& weights) {
  if (op.rows != 1 || op.transpose_a) return nullptr;
  const int64_t columns = OneDnnPanelColumns(weights);
  return type == DType::kFloat ? SingleRowOf<float>(columns) : SingleRowOf<bfloat16>(columns);
}

PackedOperand Pack(const ops::Gemm& op, const OperandDesc& b, const dnnl::memory::desc& plain,
                   const dnnl::memory::desc& packed) {
  auto reorder = std::make_shared<ReorderStep>(plain, packed, /*accumulates=*/false);
  PackedOperand operand{ops::Gemm::kB, packed.get_size(),
                        [reorder](const KernelContext& ctx) {
                          reorder->Run(ctx.input(0).data, ctx.output(0).data, ctx.workspace);
                        },
                        reorder->scratchpad_bytes()};
  if (op.transpose_b && b.shape.num_axes() > 0 && b.shape[0] == op.columns)
    operand.rows = PackOneDnnRows(plain, packed, 1);
  operand.order = StrCat(OneDnnOrder(packed), op.transpose_b ? " of columns" : " of rows");
  return operand;
}

KernelOrRefusal MakeBlocked(const ops::Gemm& op, const KernelRequest& request) {
  const OperandDesc& b = request.inputs[ops::Gemm::kB];
  if (!b.is_constant || !b.may_be_packed) return Refusal{"weights that change"};
  if (!b.packing_frees_it) return Refusal{"weights that others read, too"};
  if (b.dtype != DType::kFloat && OneDnnMultipliesTiles()) return Refusal{"not measured with AMX"};
  if (auto refusal = RefuseMatmul(op, request)) return *std::move(refusal);
  try {
    OneDnnProduct::Shape shape = ShapeOf(op, request);
    shape.b_in_own_order = true;
    auto product = std::make_shared<OneDnnProductOrSum>(shape);
    const dnnl::memory::desc& plain = product->product().plain_b();
    const dnnl::memory::desc& packed = product->product().packed_b();
    if (packed == plain || !product->agrees_on_b()) return Refusal{"oneDNN reads weights in place"};
    if (packed.get_size() != plain.get_size()) return Refusal{"blocks would be padded"};
    Kernel kernel = KernelOf(product, HasBias(request));
    if (const SingleRow multiply = SingleRowOf(op, b.dtype, packed))
      kernel = {"", [op, multiply](const KernelContext& ctx) { multiply(op, ctx); }};
    kernel.packed_weights = Pack(op, b, plain, packed);
    return kernel;
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-onednn-blocked", KernelRank::kBest,
                              MakeBlocked, {.signatures = OneDnnSignatures()});

}  // namespace
}  // namespace caffe::cpu::gemm_blocked
