// Products of many pairs of matrices by oneDNN.
#include "caffe/cpu/onednn.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

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

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::BatchedGemm, "batched-gemm-onednn",
                              KernelRank::kBest, MakeBatchedMatmul,
                              {.signatures = OneDnnSignatures()});

}  // namespace
}  // namespace caffe::cpu
