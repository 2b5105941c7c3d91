// Matrix products by cuBLASLt, with the bias added in the epilogue.
#include <cublasLt.h>

#include <map>
#include <memory>
#include <mutex>

#include "caffe/cuda/cuda_device.hpp"
#include "caffe/cuda/matrix_kernels.hpp"
#include "caffe/cuda/vendor_library.hpp"
#include "caffe/cuda/vendor_types.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/gemm.hpp"

namespace caffe::cuda {
namespace {

VendorLibrary& CublasLt() {
  static VendorLibrary library("cuBLASLt", StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR), "cublas");
  return library;
}

// Call<&cublasLtCreate>("cublasLtCreate", ...): through the library that was found.
template <auto Function, typename... Arguments>
cublasStatus_t Call(const char* name, Arguments... arguments) {
  static const auto function = reinterpret_cast<decltype(Function)>(CublasLt().Symbol(name));
  return function(arguments...);
}
#define CAFFE_CUBLASLT(name, ...) Call<&name>(#name, __VA_ARGS__)

void Check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(StrCat("cuda: ", call, ": cuBLAS status ", static_cast<int>(status),
                           "; CUBLASLT_LOG_LEVEL=1 tells more"));
}
#define CAFFE_CUBLASLT_CHECK(name, ...) Check(CAFFE_CUBLASLT(name, __VA_ARGS__), #name)

// One handle per device, kept for the process: making one takes a while.
cublasLtHandle_t HandleOf(int device) {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[device];
  if (handle == nullptr) CAFFE_CUBLASLT_CHECK(cublasLtCreate, &handle);
  return handle;
}

// cuBLASLt's matrices are column-major, ours row-major: it computes the transpose of everything,
// c^T = op(b)^T op(a)^T, whose operands are ours read as they lie.
struct Product {
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulHeuristicResult_t choice{};

  Product() = default;
  Product(const Product&) = delete;
  ~Product() {
    if (desc != nullptr) CAFFE_CUBLASLT(cublasLtMatmulDescDestroy, desc);
    for (cublasLtMatrixLayout_t layout : {first, second, result})
      if (layout != nullptr) CAFFE_CUBLASLT(cublasLtMatrixLayoutDestroy, layout);
  }
};

cublasLtMatrixLayout_t Layout(cudaDataType_t type, int64_t lines, int64_t line) {
  cublasLtMatrixLayout_t layout;
  CAFFE_CUBLASLT_CHECK(cublasLtMatrixLayoutCreate, &layout, type, static_cast<uint64_t>(line),
                       static_cast<uint64_t>(lines), line);
  return layout;
}

template <typename T>
void Set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, T value) {
  CAFFE_CUBLASLT_CHECK(cublasLtMatmulDescSetAttribute, desc, attribute, &value, sizeof(value));
}

KernelOrRefusal MakeGemm(const ops::Gemm& op, const KernelRequest& request) {
  const CudaDevice& device = CudaDeviceOf(request);
  const DType type = request.inputs[0].dtype, result_type = request.outputs[0].dtype;
  if (request.inputs[1].dtype != type) return Refusal{"the factors are of two types"};
  if (result_type != type && result_type != DType::kFloat)
    return Refusal{"the result is neither of the factors' type nor float"};
  if (type == DType::kDouble && result_type != type) return Refusal{"a float product of doubles"};
  const bool has_bias = request.inputs.size() > 2 && request.inputs[2].present;
  // A bias of another type than the result's (floats beside 16-bit products) is no epilogue of
  // cuBLASLt's, but a kernel after it.
  const bool has_epilogue = has_bias && request.inputs[2].dtype == result_type;
  const bool has_bias_after = has_bias && !has_epilogue;
  if (op.rows * op.columns == 0 || op.inner == 0) return Refusal{"an empty product"};

  const bool is_double = type == DType::kDouble;
  // TF32 rounds the factors to 10 bits of fraction; the sums stay float.
  const bool allows_tf32 = type == DType::kFloat && !request.settings.strict_fp32;
  const cublasComputeType_t compute = is_double     ? CUBLAS_COMPUTE_64F
                                      : allows_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                    : CUBLAS_COMPUTE_32F;
  if (device.is_described()) {
    // cuBLASLt chooses with the chip before it; what it may take is known.
    const auto run = [](const KernelContext&) {
      throw DeviceError("cuda: a device that is only described runs nothing");
    };
    return Kernel{"", run, kWorkspaceLimit / 8};
  }

  auto product = std::make_shared<Product>();
  CAFFE_CUBLASLT_CHECK(cublasLtMatmulDescCreate, &product->desc, compute,
                       is_double ? CUDA_R_64F : CUDA_R_32F);
  Set<int32_t>(product->desc, CUBLASLT_MATMUL_DESC_TRANSA,
               op.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  Set<int32_t>(product->desc, CUBLASLT_MATMUL_DESC_TRANSB,
               op.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (has_epilogue) {
    Set<int32_t>(product->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    Set<int32_t>(product->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                 CudaType(request.inputs[2].dtype));
  }
  const cudaDataType_t cuda_type = CudaType(type);
  product->first = op.transpose_b ? Layout(cuda_type, op.columns, op.inner)
                                  : Layout(cuda_type, op.inner, op.columns);
  product->second =
      op.transpose_a ? Layout(cuda_type, op.inner, op.rows) : Layout(cuda_type, op.rows, op.inner);
  product->result = Layout(CudaType(result_type), op.rows, op.columns);

  cublasLtMatmulPreference_t preference;
  CAFFE_CUBLASLT_CHECK(cublasLtMatmulPreferenceCreate, &preference);
  const std::unique_ptr<void, void (*)(void*)> owned(preference, [](void* p) {
    CAFFE_CUBLASLT(cublasLtMatmulPreferenceDestroy, static_cast<cublasLtMatmulPreference_t>(p));
  });
  const size_t limit = kWorkspaceLimit / 8;
  CAFFE_CUBLASLT_CHECK(cublasLtMatmulPreferenceSetAttribute, preference,
                       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof(limit));
  const cublasLtHandle_t handle = HandleOf(device.id());
  int found = 0;
  const cublasStatus_t status = CAFFE_CUBLASLT(
      cublasLtMatmulAlgoGetHeuristic, handle, product->desc, product->first, product->second,
      product->result, product->result, preference, 1, &product->choice, &found);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0) {
    return Refusal{StrCat("cuBLASLt has no algorithm (status ", static_cast<int>(status), ")")};
  }
  return Kernel{
      "",
      [product, handle, is_double, has_epilogue, has_bias_after,
       columns = op.columns](const KernelContext& ctx) {
        const double one = 1, add = ctx.accumulates(0) ? 1 : 0;
        const float one_float = 1, add_float = static_cast<float>(add);
        if (has_epilogue)
          Set<const void*>(product->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, ctx.input(2).data);
        CAFFE_CUBLASLT_CHECK(
            cublasLtMatmul, handle, product->desc,
            is_double ? static_cast<const void*>(&one) : static_cast<const void*>(&one_float),
            ctx.input(1).data, product->first, ctx.input(0).data, product->second,
            is_double ? static_cast<const void*>(&add) : static_cast<const void*>(&add_float),
            ctx.output(0).data, product->result, ctx.output(0).data, product->result,
            &product->choice.algo, ctx.workspace, product->choice.workspaceSize, StreamOf(ctx));
        if (has_bias_after) {
          const TensorView& c = ctx.output(0);
          AddBiasAndRelu(ctx,
                         {.bias = {ctx.input(2).data, ctx.input(2).dtype}, .channels = columns},
                         c.count(), {c.data, c.dtype});
        }
      },
      product->choice.workspaceSize};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Gemm, "gemm-cublaslt", KernelRank::kBest,
                              MakeGemm);

}  // namespace
}  // namespace caffe::cuda
