#include "caffe/cuda/cudnn_graph.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "caffe/cuda/algorithm_choice.hpp"
#include "caffe/cuda/cuda_check.hpp"
#include "caffe/cuda/cuda_stream.hpp"
#include "caffe/cuda/vendor_types.hpp"
#include "caffe/error.hpp"

namespace caffe::cuda {
namespace {

void Check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw DeviceError(StrCat("cuda: ", call, ": ", cudnnGetErrorString(status),
                           "; CUDNN_LOGLEVEL_DBG=1 CUDNN_LOGDEST_DBG=stderr tell more"));
}

// One per device, kept for the process: making one takes a while.
cudnnHandle_t HandleOf(const CudaDevice& device) {
  static std::mutex mutex;
  static std::map<int, cudnnHandle_t> handles;
  const std::lock_guard lock(mutex);
  cudnnHandle_t& handle = handles[device.id()];
  if (handle == nullptr) Check(cudnnCreate(&handle), "cudnnCreate");
  return handle;
}

// What cuDNN knows of a chip, in the form in which it writes and reads it. Its planner then decides
// as it would on that chip.
std::shared_ptr<fe::DeviceProperties> PropertiesOf(const ChipProperties& chip) {
  const int version = chip.compute_major * 100 + chip.compute_minor * 10;
  // Turing's multiprocessors hold half as many threads as the others, Ada's three quarters.
  const int threads = version < 800 ? 1024 : version > 800 && version < 900 ? 1536 : 2048;
  const std::string json = StrCat(
      R"({"deviceName":")", chip.name, R"(","cudaDeviceId":0,"deviceVer":)", version,
      R"(,"driverVer":)", CUDART_VERSION, R"(,"isTccDriver":0,"l2CacheSize":)", 50 << 20,
      R"(,"maxCtasPerSM":)", version < 800 ? 16 : 32,
      R"(,"maxRegistersPerSM":65536,"regsPerBlock":65536,"maxSharedMemoryPerBlock":49152)",
      R"(,"maxSharedMemoryPerBlockOptin":)", chip.shared_memory_per_block,
      R"(,"reservedSharedMemoryPerBlock":1024,"maxThreadsPerBlock":1024,"maxThreadsPerSM":)",
      threads, R"(,"memClockRateKHz":2619000,"smClockRateKHz":1980000,"multiProcessorCount":)",
      chip.multiprocessors, R"(,"pciDeviceId":0,"supportCoopLaunch":1,"totalGlobalMem":)",
      chip.memory_bytes, R"(,"warpSize":32,"maxGridSize":[2147483647,65535,65535])",
      R"(,"maxBlockSize":[1024,1024,64]})");
  auto properties = std::make_shared<fe::DeviceProperties>();
  fe::error_t error = properties->deserialize(std::vector<uint8_t>(json.begin(), json.end()));
  if (error.is_bad()) {
    throw Unsupported(StrCat("this cuDNN cannot plan for a chip that is not there: ",
                             error.get_message(), "; use cuDNN 9.8 or newer"));
  }
  return properties;
}

// "eng51_k2=1_k13=0" -> 51.
int EngineNumber(const std::string& name) {
  return name.rfind("eng", 0) == 0 ? std::atoi(name.c_str() + 3) : -1;
}

size_t BytesOf(const std::vector<int64_t>& shape, DType type) {
  return static_cast<size_t>(Shape(shape).count()) * SizeOf(type);
}

}  // namespace

fe::DataType_t CudnnType(DType type) {
  switch (type) {
    case DType::kDouble:
      return fe::DataType_t::DOUBLE;
    case DType::kFloat:
      return fe::DataType_t::FLOAT;
    case DType::kFloat16:
      return fe::DataType_t::HALF;
    case DType::kBFloat16:
      return fe::DataType_t::BFLOAT16;
    case DType::kUInt8:
      return fe::DataType_t::UINT8;
  }
  throw InternalError("cuda: unknown element type");
}

std::vector<int64_t> StridesOf(const TensorDesc& tensor) {
  const int axes = tensor.shape.num_axes();
  std::vector<int64_t> strides(axes);
  if (tensor.layout == Layout::kChannelsLast) {
    const int64_t c = tensor.shape[1], h = tensor.shape[2], w = tensor.shape[3];
    return {h * w * c, 1, w * c, c};
  }
  for (int axis = 0; axis < axes; ++axis) strides[axis] = tensor.shape.count(axis + 1);
  return strides;
}

CudnnGraph::CudnnGraph(CudaDevice& device, DType type)
    : device_(device), graph_(std::make_shared<fe::graph::Graph>()) {
  const auto compute = type == DType::kDouble ? fe::DataType_t::DOUBLE : fe::DataType_t::FLOAT;
  graph_->set_io_data_type(CudnnType(type))
      .set_intermediate_data_type(compute)
      .set_compute_data_type(compute);
  if (device.is_described()) {
    graph_->set_device_properties(PropertiesOf(device.chip()));
  } else {
    handle_ = HandleOf(device);
  }
}

CudnnTensor CudnnGraph::Input(int64_t number, std::vector<int64_t> shape,
                              std::vector<int64_t> strides, DType type) {
  tensor_bytes_[number] = BytesOf(shape, type);
  return graph_->tensor(fe::graph::Tensor_attributes()
                            .set_uid(number)
                            .set_dim(shape)
                            .set_stride(strides)
                            .set_data_type(CudnnType(type)));
}

void CudnnGraph::Output(int64_t number, const CudnnTensor& tensor, std::vector<int64_t> shape,
                        std::vector<int64_t> strides, DType type) {
  tensor_bytes_[number] = BytesOf(shape, type);
  tensor->set_output(true).set_uid(number).set_dim(shape).set_stride(strides).set_data_type(
      CudnnType(type));
}

std::vector<CudnnGraph::Candidate> CudnnGraph::Candidates(const EngineChoice& choice) const {
  std::vector<Candidate> candidates;
  const size_t wanted = choice.is_timed ? kTimedAlgorithms : 1;
  for (int64_t i = 0; i < graph_->get_execution_plan_count() && candidates.size() < wanted; ++i) {
    Candidate candidate{.index = i};
    if (graph_->get_plan_name_at_index(i, candidate.name).is_bad()) continue;
    if (choice.engine >= 0 && EngineNumber(candidate.name) != choice.engine) continue;
    if (graph_->build_plan_at_index(i).is_bad()) continue;
    const int64_t bytes = graph_->get_workspace_size_plan_at_index(i);
    if (bytes < 0 || static_cast<size_t>(bytes) > kWorkspaceLimit) continue;
    candidate.workspace_bytes = static_cast<size_t>(bytes);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

std::string CudnnGraph::Plan(const EngineChoice& choice) {
  const auto refused = [](fe::error_t error) {
    return error.is_bad() ? "cuDNN: " + error.get_message() : "";
  };
  if (std::string why = refused(graph_->validate()); !why.empty()) return why;
  if (std::string why = refused(graph_->build_operation_graph(handle_)); !why.empty()) return why;
  if (std::string why =
          refused(graph_->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
      !why.empty()) {
    return why;
  }
  graph_->deselect_workspace_greater_than(static_cast<int64_t>(kWorkspaceLimit));
  if (!choice.allows_tensor_cores) {
    graph_->deselect_numeric_notes({fe::NumericalNote_t::TENSOR_CORE,
                                    fe::NumericalNote_t::DOWN_CONVERT_INPUTS,
                                    fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION});
  }
  if (choice.is_deterministic) {
    graph_->deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  }
  std::vector<Candidate> candidates = Candidates(choice);
  if (candidates.empty()) {
    return choice.engine >= 0
               ? StrCat("cuDNN has no engine ", choice.engine, " for it (conv_algos_override)")
               : StrCat("cuDNN has no engine for it within ", kWorkspaceLimit >> 20,
                        " MiB of workspace");
  }
  for (const Candidate& candidate : candidates) engines_.push_back(candidate.name);
  if (choice.is_timed) {
    const size_t chosen = ChooseAlgorithm(
        AlgorithmCache::OfUser(), AlgorithmKey(device_, "cudnn", cudnnGetVersion(), choice.problem),
        engines_, [&] { return Times(candidates); });
    std::swap(candidates[0], candidates[chosen]);
    std::swap(engines_[0], engines_[chosen]);
  }
  index_ = candidates[0].index;
  workspace_bytes_ = candidates[0].workspace_bytes;
  return "";
}

std::vector<double> CudnnGraph::Times(const std::vector<Candidate>& candidates) const {
  std::vector<int64_t> numbers;
  std::vector<size_t> bytes;
  for (const auto& [number, tensor_bytes] : tensor_bytes_) {
    numbers.push_back(number);
    bytes.push_back(tensor_bytes);
  }
  size_t workspace_bytes = 0;
  for (const Candidate& candidate : candidates)
    workspace_bytes = std::max(workspace_bytes, candidate.workspace_bytes);
  bytes.push_back(workspace_bytes);
  const auto stream = static_cast<cudaStream_t>(device_.compute_stream().native());
  Check(cudnnSetStream(handle_, stream), "cudnnSetStream");
  return TimeAlgorithms(
      device_, bytes, candidates.size(), [&](size_t i, std::span<void* const> buffers) {
        CudnnPointers pointers;
        for (size_t k = 0; k < numbers.size(); ++k) pointers[numbers[k]] = buffers[k];
        return graph_->execute_plan_at_index(handle_, pointers, buffers.back(), candidates[i].index)
            .is_good();
      });
}

void CudnnGraph::Run(CudnnPointers pointers, void* workspace, cudaStream_t stream) const {
  Check(cudnnSetStream(handle_, stream), "cudnnSetStream");
  fe::error_t error = graph_->execute_plan_at_index(handle_, pointers, workspace, index_);
  if (error.is_bad()) throw DeviceError("cuda: cuDNN: " + error.get_message());
}

}  // namespace caffe::cuda
