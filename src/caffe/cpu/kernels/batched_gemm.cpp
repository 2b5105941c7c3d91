// Products of many pairs of matrices by oneDNN.
#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// The product of the batch's axes from `outer` on.
OneDnnProduct::Shape ShapeFrom(const ops::BatchedGemm& op, size_t outer,
                               const KernelRequest& request) {
  const auto inner_axes = [&](const std::vector<int64_t>& numbers) {
    return dnnl::memory::dims(numbers.begin() + static_cast<ptrdiff_t>(outer), numbers.end());
  };
  return {.rows = op.rows,
          .columns = op.columns,
          .inner = op.inner,
          .transpose_a = op.transpose_a,
          .transpose_b = op.transpose_b,
          .a = request.inputs[op.kA].dtype,
          .b = request.inputs[op.kB].dtype,
          .result = request.outputs[0].dtype,
          .batch = inner_axes(op.batch),
          .a_steps = inner_axes(op.a_steps),
          .b_steps = inner_axes(op.b_steps),
          .c_steps = inner_axes(op.c_steps)};
}

KernelOrRefusal MakeBatchedMatmul(const ops::BatchedGemm& op, const KernelRequest& request) {
  if (op.items() * op.rows * op.columns == 0 || op.inner == 0) return Refusal{"an empty product"};
  const DType type = request.inputs[op.kA].dtype, result = request.outputs[0].dtype;
  if (request.inputs[op.kB].dtype != type) return Refusal{"factors of two types"};
  if (result != type && result != DType::kFloat)
    return Refusal{"a result neither of the factors' type nor float"};
  const size_t outer = FirstFreeAxis(op);  // oneDNN computes the batch of the axes from here on
  try {
    auto product = std::make_shared<OneDnnProductOrSum>(ShapeFrom(op, outer, request));
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

// oneDNN's second factor is signed. The scales are known, so oneDNN applies them to its sums.
KernelOrRefusal MakeBatchedInt8(const ops::BatchedGemm& op, const KernelRequest& request) {
  const OperandDesc &a = request.inputs[op.kA], &b = request.inputs[op.kB], &c = request.outputs[0];
  if (!Is8Bit(a.dtype) || b.dtype != DType::kInt8)
    return Refusal{"only 8-bit factors, the second one signed"};
  if (op.items() * op.rows * op.columns == 0 || op.inner == 0) return Refusal{"an empty product"};
  try {
    OneDnnProduct::Shape shape = ShapeFrom(op, 0, request);
    shape.factor = ChannelFactor(a.scale, b.scale, ScaleOf(c));
    auto product = std::make_shared<OneDnnProduct>(shape, /*accumulates=*/false);
    const auto run = [product, op](const KernelContext& ctx) {
      product->Run(ctx.input(op.kA).data, ctx.input(op.kB).data, nullptr, ctx.output(0).data,
                   ctx.workspace);
    };
    return Kernel{"", run, product->workspace_bytes()};
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

// For processors that multiply 8-bit numbers natively; otherwise a type that no op has.
KernelTraits Int8MatmulTraits() {
  KernelTraits traits = ops::Int8PairsTraits();
  if (!OneDnnMultiplies8Bits()) traits.signatures = {{DType::kUInt8, DType::kFloat}};
  return traits;
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::BatchedGemm, "batched-gemm-onednn-int8",
                              KernelRank::kBest, MakeBatchedInt8, Int8MatmulTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::BatchedGemm, "batched-gemm-onednn",
                              KernelRank::kBest, MakeBatchedMatmul,
                              {.signatures = OneDnnSignatures()});

}  // namespace
}  // namespace caffe::cpu
