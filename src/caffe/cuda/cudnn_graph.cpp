#include "caffe/cuda/cudnn_graph.hpp"

#include "caffe/cuda/nvidia_libraries.hpp"
#include "caffe/cuda/vendor_types.hpp"
#include "caffe/error.hpp"

namespace caffe::cuda {
namespace {

std::shared_ptr<fe::DeviceProperties> PropertiesOf(const ChipProperties& chip) {
  const std::string json = SerializedForCudnn(chip);
  auto properties = std::make_shared<fe::DeviceProperties>();
  fe::error_t error = properties->deserialize(std::vector<uint8_t>(json.begin(), json.end()));
  if (error.is_bad()) {
    throw Unsupported(StrCat("cuDNN ", CudnnVersionText(cudnnGetVersion()),
                             " cannot plan for a chip that is not there: ", error.get_message(),
                             "; versions 9.8 to 9.28 can"));
  }
  return properties;
}

// Size up to the last element, which is more than the number of elements if there are gaps.
TimedBuffer BufferOf(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                     DType type) {
  int64_t last = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) last += (shape[axis] - 1) * strides[axis];
  return {static_cast<size_t>(last + 1) * SizeOf(type), type};
}

}  // namespace

std::string SerializedForCudnn(const ChipProperties& chip) {
  const int version = chip.compute_major * 100 + chip.compute_minor * 10;
  // Turing's multiprocessors hold half as many threads as the others, Ada's three quarters.
  const int threads = version < 800 ? 1024 : version > 800 && version < 900 ? 1536 : 2048;
  return StrCat(
      R"({"deviceName":")", chip.name, R"(","cudaDeviceId":0,"deviceVer":)", version,
      R"(,"driverVer":)", CUDART_VERSION, R"(,"isTccDriver":0,"l2CacheSize":)", 50 << 20,
      R"(,"maxCtasPerSM":)", version < 800 ? 16 : 32,
      R"(,"maxRegistersPerSM":65536,"regsPerBlock":65536,"maxSharedMemoryPerBlock":49152)",
      R"(,"maxSharedMemoryPerBlockOptin":)", chip.shared_memory_per_block,
      R"(,"reservedSharedMemoryPerBlock":1024,"maxThreadsPerBlock":1024,"maxThreadsPerSM":)",
      threads, R"(,"memClockRateKHz":2619000,"memoryBusWidth":)", chip.memory_bus_bits,
      R"(,"smClockRateKHz":1980000,"multiProcessorCount":)", chip.multiprocessors,
      R"(,"pciDeviceId":0,"supportCoopLaunch":1,"totalGlobalMem":)", chip.memory_bytes,
      R"(,"warpSize":32,"maxGridSize":[2147483647,65535,65535])",
      R"(,"maxBlockSize":[1024,1024,64]})");
}

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
    case DType::kInt8:
      return fe::DataType_t::INT8;
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
    : device_(device), description_{std::make_shared<PlannableGraph>(), {}} {
  const auto compute = type == DType::kDouble ? fe::DataType_t::DOUBLE : fe::DataType_t::FLOAT;
  graph()
      .set_io_data_type(CudnnType(type))
      .set_intermediate_data_type(compute)
      .set_compute_data_type(compute);
  if (!device.is_described()) return;
  LoadDriverOrStub();
  graph().set_device_properties(PropertiesOf(device.chip()));
}

CudnnTensor CudnnGraph::Input(int64_t number, std::vector<int64_t> shape,
                              std::vector<int64_t> strides, DType type) {
  description_.tensors[number] = BufferOf(shape, strides, type);
  return graph().tensor(fe::graph::Tensor_attributes()
                            .set_uid(number)
                            .set_dim(shape)
                            .set_stride(strides)
                            .set_data_type(CudnnType(type)));
}

void CudnnGraph::Output(int64_t number, const CudnnTensor& tensor, std::vector<int64_t> shape,
                        std::vector<int64_t> strides, DType type, int64_t alignment) {
  TimedBuffer& buffer = description_.tensors[number] = BufferOf(shape, strides, type);
  buffer.is_output = true;
  if (alignment != kTensorAlignment)
    description_.notes += StrCat(" output ", number, " aligned to ", alignment);
  tensor->set_output(true)
      .set_uid(number)
      .set_dim(shape)
      .set_stride(strides)
      .set_data_type(CudnnType(type))
      .set_alignment(alignment);
}

std::string CudnnGraph::Plan(const EngineChoice& choice) {
  problem_ = CudnnProblem::Of(device_, description_, choice);
  return problem_->Plan(choice.is_ahead);
}

void CudnnGraph::Run(CudnnPointers pointers, void* workspace, cudaStream_t stream) const {
  problem_->Run(device_, std::move(pointers), workspace, stream);
}

}  // namespace caffe::cuda
