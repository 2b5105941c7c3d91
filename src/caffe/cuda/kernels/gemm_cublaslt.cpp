// Matrix products by cuBLASLt, one with the bias added in the epilogue, or batches of them.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "caffe/core/hash.hpp"
#include "caffe/cuda/algorithm_choice.hpp"
#include "caffe/cuda/cuda_check.hpp"
#include "caffe/cuda/cuda_device.hpp"
#include "caffe/cuda/matrix_kernels.hpp"
#include "caffe/cuda/nvidia_libraries.hpp"
#include "caffe/cuda/vendor_types.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/gemm.hpp"

namespace caffe::cuda {
namespace {

// Call<&cublasLtCreate>("cublasLtCreate", ...): calls the function in the library that was loaded.
template <auto Function, typename... Arguments>
auto Call(const char* name, Arguments... arguments) {
  static const auto function = reinterpret_cast<decltype(Function)>(CublasLtLibrary().Symbol(name));
  return function(arguments...);
}
#define CAFFE_CUBLASLT(name, ...) Call<&name>(#name __VA_OPT__(, ) __VA_ARGS__)

class CublasError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

void Check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw CublasError(StrCat(
      "cuda: ", call, ": cuBLAS status ", static_cast<int>(status), "; ",
      status == CUBLAS_STATUS_ALLOC_FAILED ? kNoMemoryAdvice : "CUBLASLT_LOG_LEVEL=1 tells more"));
}
#define CAFFE_CUBLASLT_CHECK(name, ...) Check(CAFFE_CUBLASLT(name, __VA_ARGS__), #name)

// One handle per device, kept for the process, because creating one takes a while. Threads may
// share it: it has no stream and no settings.
cublasLtHandle_t HandleOf(CudaDevice& device) {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  device.MakeCurrent();
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[device.id()];
  if (handle == nullptr) CAFFE_CUBLASLT_CHECK(cublasLtCreate, &handle);
  return handle;
}

// cuBLASLt's matrices are column-major, ours row-major: it computes the transpose of everything,
// c^T = op(b)^T op(a)^T, which uses our operands in their layout.
struct Product {
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulHeuristicResult_t algorithm{};  // the chosen one
  cublasLtHandle_t handle = nullptr;
  bool is_double = false;

  Product() = default;
  Product(const Product&) = delete;
  ~Product() {
    if (desc != nullptr) CAFFE_CUBLASLT(cublasLtMatmulDescDestroy, desc);
    for (cublasLtMatrixLayout_t layout : {first, second, result})
      if (layout != nullptr) CAFFE_CUBLASLT(cublasLtMatrixLayoutDestroy, layout);
  }

  // Launches c = or += a b.
  cublasStatus_t Launch(const cublasLtMatmulHeuristicResult_t& by, const void* a, const void* b,
                        void* c, bool adds, void* workspace, cudaStream_t stream) const {
    const double one = 1, add = adds ? 1 : 0;
    const float one_float = 1, add_float = adds ? 1 : 0;
    return CAFFE_CUBLASLT(
        cublasLtMatmul, handle, desc,
        is_double ? static_cast<const void*>(&one) : static_cast<const void*>(&one_float), b, first,
        a, second,
        is_double ? static_cast<const void*>(&add) : static_cast<const void*>(&add_float), c,
        result, c, result, &by.algo, workspace, by.workspaceSize, stream);
  }
};

// Sizes of a product as in Gemm. A batch has one axis; `a`, `b` and `c` are the matrices by which
// its steps move.
struct ProductShape {
  int64_t rows = 0, columns = 0, inner = 0;
  bool transpose_a = false, transpose_b = false;
  struct {
    int64_t items = 1, a = 0, b = 0, c = 0;
  } batch = {};
};

// `batch` matrices, `step` of them apart.
cublasLtMatrixLayout_t LayoutOf(cudaDataType_t type, int64_t lines, int64_t line, int64_t batch,
                                int64_t step) {
  cublasLtMatrixLayout_t layout;
  CAFFE_CUBLASLT_CHECK(cublasLtMatrixLayoutCreate, &layout, type, static_cast<uint64_t>(line),
                       static_cast<uint64_t>(lines), line);
  if (batch == 1) return layout;
  const auto items = static_cast<int32_t>(batch);
  const int64_t elements = step * lines * line;
  CAFFE_CUBLASLT_CHECK(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                       &items, sizeof(items));
  CAFFE_CUBLASLT_CHECK(cublasLtMatrixLayoutSetAttribute, layout,
                       CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &elements, sizeof(elements));
  return layout;
}

template <typename T>
void Set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, T value) {
  CAFFE_CUBLASLT_CHECK(cublasLtMatmulDescSetAttribute, desc, attribute, &value, sizeof(value));
}

// Workspace limit for one product: products are many and gain little from more.
constexpr size_t kProductWorkspaceLimit = kWorkspaceLimit / 8;

// Returns the heuristics' candidates, best first. Partial sums of a split-K product stay in the
// compute type and are added in a fixed order.
std::vector<cublasLtMatmulHeuristicResult_t> Candidates(const Product& product, int wanted,
                                                        cublasStatus_t* status) {
  cublasLtMatmulPreference_t preference;
  CAFFE_CUBLASLT_CHECK(cublasLtMatmulPreferenceCreate, &preference);
  const std::unique_ptr<void, void (*)(void*)> owned(preference, [](void* p) {
    CAFFE_CUBLASLT(cublasLtMatmulPreferenceDestroy, static_cast<cublasLtMatmulPreference_t>(p));
  });
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    CAFFE_CUBLASLT_CHECK(cublasLtMatmulPreferenceSetAttribute, preference, attribute, &value,
                         sizeof(value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kProductWorkspaceLimit);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (const auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(operand, uint32_t{64});  // the alignment of plan-memory
  }
  std::vector<cublasLtMatmulHeuristicResult_t> candidates(wanted);
  int found = 0;
  *status = CAFFE_CUBLASLT(cublasLtMatmulAlgoGetHeuristic, product.handle, product.desc,
                           product.first, product.second, product.result, product.result,
                           preference, wanted, candidates.data(), &found);
  candidates.resize(*status == CUBLAS_STATUS_SUCCESS ? found : 0);
  std::erase_if(candidates, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return candidates;
}

// "alg66_tile20_stages8_...": all attributes that cuBLASLt reports for an algorithm. Not every
// algorithm has every attribute.
std::string NameOf(const cublasLtMatmulAlgo_t& algorithm) {
  struct Attribute {
    cublasLtMatmulAlgoConfigAttributes_t id;
    const char* name;
    size_t bytes;
  };
  static constexpr std::array<Attribute, 9> kAttributes = {{
      {CUBLASLT_ALGO_CONFIG_ID, "alg", 4},
      {CUBLASLT_ALGO_CONFIG_TILE_ID, "_tile", 4},
      {CUBLASLT_ALGO_CONFIG_STAGES_ID, "_stages", 4},
      {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, "_split", 4},
      {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, "_sum", 4},
      {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, "_swizzle", 4},
      {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, "_option", 4},
      {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, "_inner", 2},
      {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, "_cluster", 2},
  }};
  std::string name;
  bool is_complete = true;
  for (const Attribute& attribute : kAttributes) {
    uint32_t value = 0;  // only the low bytes are written
    size_t written = 0;
    const cublasStatus_t status = CAFFE_CUBLASLT(cublasLtMatmulAlgoConfigGetAttribute, &algorithm,
                                                 attribute.id, &value, attribute.bytes, &written);
    is_complete &= status == CUBLAS_STATUS_SUCCESS;
    if (status == CUBLAS_STATUS_SUCCESS) name += StrCat(attribute.name, value);
  }
  if (is_complete) return name;
  const std::string_view bytes(reinterpret_cast<const char*>(&algorithm), sizeof(algorithm));
  return StrCat(name, "_bytes", Hash64(bytes));
}

// Removes candidates whose names equal that of an earlier one.
std::vector<std::string> NamesOfDistinct(std::vector<cublasLtMatmulHeuristicResult_t>* candidates) {
  std::vector<std::string> names;
  std::erase_if(*candidates, [&](const cublasLtMatmulHeuristicResult_t& candidate) {
    std::string name = NameOf(candidate.algo);
    if (std::find(names.begin(), names.end(), name) != names.end()) return true;
    names.push_back(std::move(name));
    return false;
  });
  return names;
}

// Buffers are in the order of the product's operands: a, b, c, the epilogue's bias if any,
// workspace.
std::vector<double> Times(const Product& product,
                          const std::vector<cublasLtMatmulHeuristicResult_t>& candidates,
                          const KernelRequest& request, bool has_epilogue,
                          const MayTryAlgorithm& may_try) {
  size_t workspace_bytes = 0;
  for (const cublasLtMatmulHeuristicResult_t& candidate : candidates)
    workspace_bytes = std::max(workspace_bytes, candidate.workspaceSize);
  const auto operand = [](const OperandDesc& desc) {
    return TimedBuffer{desc.bytes(), desc.dtype};
  };
  const std::array<TimedBuffer, 5> buffers = {
      operand(request.inputs[0]), operand(request.inputs[1]),
      TimedBuffer{request.outputs[0].bytes(), request.outputs[0].dtype, true},
      has_epilogue ? operand(request.inputs[2]) : TimedBuffer{}, TimedBuffer{workspace_bytes, {}}};
  const auto stream = static_cast<cudaStream_t>(request.device.compute_stream().native());
  const auto launch = [&](size_t i, std::span<void* const> places) {
    if (has_epilogue) Set<const void*>(product.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, places[3]);
    return product.Launch(candidates[i], places[0], places[1], places[2], false, places[4],
                          stream) == CUBLAS_STATUS_SUCCESS;
  };
  return TimeAlgorithms(request.device, buffers, candidates.size(), launch, may_try);
}

// Kinds of cuBLASLt's product for a Gemm.
struct ProductKinds {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  bool is_double = false;
  bool has_epilogue = false;  // the bias is added by cuBLASLt
};

std::shared_ptr<Product> Describe(const ProductShape& shape, const KernelRequest& request,
                                  const ProductKinds& kinds) {
  auto product = std::make_shared<Product>();
  product->is_double = kinds.is_double;
  CAFFE_CUBLASLT_CHECK(cublasLtMatmulDescCreate, &product->desc, kinds.compute,
                       kinds.is_double ? CUDA_R_64F : CUDA_R_32F);
  Set<int32_t>(product->desc, CUBLASLT_MATMUL_DESC_TRANSA,
               shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  Set<int32_t>(product->desc, CUBLASLT_MATMUL_DESC_TRANSB,
               shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (kinds.has_epilogue) {
    Set<int32_t>(product->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    Set<int32_t>(product->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                 CudaType(request.inputs[2].dtype));
  }
  const cudaDataType_t type = CudaType(request.inputs[0].dtype);
  const auto layout = [&](cudaDataType_t of, int64_t rows, int64_t columns, bool is_transposed,
                          int64_t step) {
    return is_transposed ? LayoutOf(of, columns, rows, shape.batch.items, step)
                         : LayoutOf(of, rows, columns, shape.batch.items, step);
  };
  product->first = layout(type, shape.inner, shape.columns, shape.transpose_b, shape.batch.b);
  product->second = layout(type, shape.rows, shape.inner, shape.transpose_a, shape.batch.a);
  product->result =
      layout(CudaType(request.outputs[0].dtype), shape.rows, shape.columns, false, shape.batch.c);
  return product;
}

// Chooses the product's algorithm; returns the names of the candidates, the chosen one first. Empty
// if there is none.
std::vector<std::string> Choose(Product& product, const KernelRequest& request, bool has_epilogue,
                                cublasStatus_t* status) {
  const bool is_timed = AreAlgorithmsTimed(request);
  auto candidates = Candidates(product, kTimedAlgorithms, status);
  if (candidates.empty()) return {};
  if (!is_timed) candidates.resize(1);
  std::vector<std::string> names = NamesOfDistinct(&candidates);
  const auto time = [&](const MayTryAlgorithm& may_try) {
    return Times(product, candidates, request, has_epilogue, may_try);
  };
  const auto key = [&] {
    return AlgorithmKey(CudaDeviceOf(request), "cublasLt", CAFFE_CUBLASLT(cublasLtGetVersion),
                        ProblemOf(request));
  };
  const size_t chosen =
      is_timed ? ChooseAlgorithm(AlgorithmCache::OfUser(), key(), names, time) : 0;
  std::swap(names[0], names[chosen]);
  product.algorithm = candidates[chosen];
  return names;
}

// Runs a product whose first pair of matrices is at a and b, and its result at c.
class ChosenProduct {
 public:
  ChosenProduct(std::shared_ptr<Product> product, CudaDevice& device)
      : product_(std::move(product)), device_(&device) {}

  size_t workspace_bytes() const { return product_->algorithm.workspaceSize; }
  void SetBias(const void* bias) const {
    Set<const void*>(product_->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  void Run(const KernelContext& ctx, const void* a, const void* b, void* c, bool adds) const {
    const cublasStatus_t status =
        product_->Launch(product_->algorithm, a, b, c, adds, ctx.workspace, StreamOf(ctx));
    if (status != CUBLAS_STATUS_SUCCESS) ThrowErrorOfEarlierWork(*device_);
    Check(status, "cublasLtMatmul");
  }

 private:
  std::shared_ptr<Product> product_;
  CudaDevice* device_;
};

// The refusal of operands whose types cuBLASLt does not combine.
std::optional<Refusal> WhyNotTypes(const KernelRequest& request) {
  const DType type = request.inputs[0].dtype, result_type = request.outputs[0].dtype;
  if (request.inputs[1].dtype != type) return Refusal{"the factors are of two types"};
  if (result_type != type && result_type != DType::kFloat)
    return Refusal{"the result is neither of the factors' type nor float"};
  if (type == DType::kDouble && result_type != type) return Refusal{"a float product of doubles"};
  return std::nullopt;
}

// Calls make(chosen, names) with the product by the chosen algorithm and the names of all
// candidates; returns its kernel, or why cuBLASLt has none.
template <typename Make>
KernelOrRefusal MakeProduct(const ProductShape& shape, const KernelRequest& request,
                            bool has_epilogue, const Make& make) {
  CudaDevice& device = CudaDeviceOf(request);
  const DType type = request.inputs[0].dtype;
  const bool is_double = type == DType::kDouble;
  // TF32 rounds the factors to 10 bits of mantissa; the sums stay float.
  const bool allows_tf32 = type == DType::kFloat && !request.settings.strict_fp32;
  const cublasComputeType_t compute = is_double     ? CUBLAS_COMPUTE_64F
                                      : allows_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                    : CUBLAS_COMPUTE_32F;
  if (device.is_described()) {
    // cuBLASLt chooses only with the chip present; its workspace limit is known.
    const auto run = [](const KernelContext&) {
      throw DeviceError("cuda: a device that is only described runs nothing");
    };
    return Kernel{"", run, kProductWorkspaceLimit};
  }
  std::shared_ptr<Product> product;
  std::vector<std::string> names;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const cublasLtHandle_t handle = HandleOf(device);
  try {
    product = Describe(shape, request, {compute, is_double, has_epilogue});
    product->handle = handle;
    names = Choose(*product, request, has_epilogue, &status);
  } catch (const CublasError& error) {
    return Refusal{error.what()};
  }
  if (names.empty()) {
    return Refusal{StrCat("cuBLASLt has no algorithm (status ", static_cast<int>(status), ")")};
  }
  return make(ChosenProduct(std::move(product), device), std::move(names));
}

KernelOrRefusal MakeGemm(const ops::Gemm& op, const KernelRequest& request) {
  if (const auto refusal = WhyNotTypes(request)) return *refusal;
  const bool has_bias = request.inputs.size() > 2 && request.inputs[2].present;
  // cuBLASLt's epilogue cannot add a bias whose type differs from the result's (floats with 16-bit
  // products), so a kernel adds it afterwards. Its table of types has no bias of doubles either.
  const bool has_epilogue = has_bias && request.inputs[2].dtype == request.outputs[0].dtype &&
                            request.inputs[0].dtype != DType::kDouble;
  const bool has_bias_after = has_bias && !has_epilogue;
  if (op.rows * op.columns == 0 || op.inner == 0) return Refusal{"an empty product"};
  const ProductShape shape{op.rows, op.columns, op.inner, op.transpose_a, op.transpose_b};
  return MakeProduct(
      shape, request, has_epilogue,
      [&](const ChosenProduct& product, std::vector<std::string> names) -> KernelOrRefusal {
        const auto run = [product, has_epilogue, has_bias_after,
                          columns = op.columns](const KernelContext& ctx) {
          if (has_epilogue) product.SetBias(ctx.input(2).data);
          const TensorView& c = ctx.output(0);
          product.Run(ctx, ctx.input(0).data, ctx.input(1).data, c.data, ctx.accumulates(0));
          if (has_bias_after) {
            AddBiasAndRelu(ctx,
                           {.bias = {ctx.input(2).data, ctx.input(2).dtype}, .channels = columns},
                           c.count(), {c.data, c.dtype});
          }
        };
        return Kernel{"", run, product.workspace_bytes(), std::move(names)};
      });
}

// cuBLASLt's batches have one axis, here the last one; a product runs for each place of the others.
KernelOrRefusal MakeBatchedGemm(const ops::BatchedGemm& op, const KernelRequest& request) {
  if (const auto refusal = WhyNotTypes(request)) return *refusal;
  if (op.items() * op.rows * op.columns == 0 || op.inner == 0) return Refusal{"an empty product"};
  ProductShape shape{op.rows, op.columns, op.inner, op.transpose_a, op.transpose_b};
  size_t outer = op.batch.size();
  if (outer > 0 && op.c_steps.back() != 0 &&
      op.batch.back() <= std::numeric_limits<int32_t>::max()) {
    --outer;
    shape.batch = {op.batch.back(), op.a_steps.back(), op.b_steps.back(), op.c_steps.back()};
  }
  return MakeProduct(
      shape, request, /*has_epilogue=*/false,
      [&](const ChosenProduct& product, std::vector<std::string> names) -> KernelOrRefusal {
        const auto run = [product, op, outer](const KernelContext& ctx) {
          for (int64_t place = 0; place < Places(op, 0, outer); ++place) {
            const ops::MatrixPair pair = PairAt(op, 0, outer, place);
            product.Run(ctx, ops::MatrixAt(ctx.input(op.kA), pair.a, op.rows, op.inner),
                        ops::MatrixAt(ctx.input(op.kB), pair.b, op.inner, op.columns),
                        ops::MatrixAt(ctx.output(0), pair.c, op.rows, op.columns),
                        pair.adds || ctx.accumulates(0));
          }
        };
        return Kernel{"", run, product.workspace_bytes(), std::move(names)};
      });
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Gemm, "gemm-cublaslt", KernelRank::kBest,
                              MakeGemm);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::BatchedGemm, "batched-gemm-cublaslt",
                              KernelRank::kBest, MakeBatchedGemm);

}  // namespace
}  // namespace caffe::cuda
