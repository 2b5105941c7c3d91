#include "caffe/cuda/cuda_device.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>

#include "caffe/cuda/cuda_check.hpp"
#include "caffe/cuda/cuda_stream.hpp"
#include "caffe/cuda/pinned_memory.hpp"
#include "caffe/device/host_memory.hpp"
#include "caffe/device/reserved_memory.hpp"
#include "caffe/device/timed_event.hpp"

namespace caffe::cuda {
namespace {

std::string Version(int version) {
  return StrCat(version / 1000, ".", version % 1000 / 10);
}

// "NVIDIA H200 (compute capability 9.0, 132 multiprocessors, 139 GiB)".
std::string Describe(const ChipProperties& chip) {
  return StrCat(chip.name, " (compute capability ", chip.compute_major, ".", chip.compute_minor,
                ", ", chip.multiprocessors, " multiprocessors, ", chip.memory_bytes >> 30, " GiB)");
}

// For tests of several ranks on a machine with one GPU: each GPU serves as this many devices, each
// with its own streams. NCCL uses a GPU only once, so CAFFE_CUDA_LIBRARY_PATH must name the folder
// of a replacement (tests/one_gpu/nccl.cu).
int DevicesPerGpu() {
  const char* const text = std::getenv("CAFFE_TEST_RANKS_PER_GPU");
  return text == nullptr ? 1 : std::clamp(std::atoi(text), 1, 8);
}

// Explains in one sentence why no GPU is available; makes the process's first CUDA call.
int CountGpus() {
  int driver = 0, runtime = 0, count = 0;
  CAFFE_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    throw DeviceError(
        "cuda: no NVIDIA driver is loaded (libcuda.so.1); install one, or run on the CPU "
        "(--set solver_mode=CPU and no --gpu)");
  }
  // Drivers support every runtime of their major version.
  if (driver / 1000 < runtime / 1000) {
    throw DeviceError(
        StrCat("cuda: the NVIDIA driver serves CUDA up to ", Version(driver),
               " but this build needs ", Version(runtime / 1000 * 1000),
               "; install a newer driver, or run on the CPU (--set solver_mode=CPU and no --gpu)"));
  }
  CAFFE_CUDA_CHECK(cudaGetDeviceCount(&count));
  return count;
}

int CountDevices() {
  return CountGpus() * DevicesPerGpu();
}

ChipProperties PropertiesOf(int id) {
  cudaDeviceProp properties;
  CAFFE_CUDA_CHECK(cudaGetDeviceProperties(&properties, id));
  return {properties.name,           properties.major,
          properties.minor,          properties.multiProcessorCount,
          properties.totalGlobalMem, properties.sharedMemPerBlockOptin};
}

// "GPU-01234567...", as nvidia-smi -L prints it but without the dashes.
std::string IdentityOf(int id) {
  cudaDeviceProp properties;
  CAFFE_CUDA_CHECK(cudaGetDeviceProperties(&properties, id));
  std::string text = "GPU-";
  for (const char byte : properties.uuid.bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    const auto number = static_cast<unsigned char>(byte);
    text += kDigits[number >> 4];
    text += kDigits[number & 15];
  }
  return text;
}

}  // namespace

void ThrowErrorOfEarlierWork(Device& device) {
  CAFFE_CUDA_CHECK(cudaPeekAtLastError());
  const auto stream = static_cast<cudaStream_t>(device.compute_stream().native());
  const cudaError_t status = cudaStreamQuery(stream);
  if (IsFault(status)) ThrowCudaError(status, "cudaStreamQuery");
  ForgetCudaError();  // work is still running, or the query is not allowed during a capture
}

namespace {

class RealCudaDevice final : public CudaDevice {
 public:
  // `gpu`: CUDA's device number.
  RealCudaDevice(int id, int gpu) : CudaDevice(id, PropertiesOf(gpu)), gpu_(gpu) {
    MakeCurrent();
    stream_ = MakeCudaStream();
  }

  std::string description() const override { return Describe(chip()); }
  std::string identity() const override {
    return IdentityOf(gpu_) + (id() == gpu_ ? "" : StrCat("/", id()));
  }

  void MakeCurrent() override { CAFFE_CUDA_CHECK(cudaSetDevice(gpu_)); }

  std::shared_ptr<void> Allocate(size_t bytes) override {
    MakeCurrent();
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, std::max<size_t>(bytes, 1));
    if (status == cudaErrorMemoryAllocation) ThrowOutOfMemory(bytes);
    CheckCuda(status, "cudaMalloc");
    std::shared_ptr<void> owned(memory, [](void* p) { cudaFree(p); });
    // On the compute stream, because that is where the memory is used first.
    stream_->FillZero(memory, bytes);
    return owned;
  }

  std::optional<size_t> FreeBytes() override {
    MakeCurrent();
    size_t free = 0, total = 0;
    CAFFE_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return free;
  }

  void CopyToHost(void* host, const void* device, size_t bytes) override {
    MakeCurrent();
    stream_->CopyToHost(host, device, bytes);
    stream_->Synchronize();
  }
  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    MakeCurrent();
    stream_->CopyFromHost(device, host, bytes);
  }
  // Does not synchronise the device: that is an error while another thread captures on any stream.
  void Synchronize() override {
    MakeCurrent();
    stream_->Synchronize();
    default_stream_->Synchronize();
  }

  Stream& compute_stream() override { return *stream_; }
  Stream& default_stream() override { return *default_stream_; }
  std::unique_ptr<Stream> MakeStream() override {
    MakeCurrent();
    return MakeCudaStream();
  }
  std::unique_ptr<Stream> MakeUrgentStream() override {
    MakeCurrent();
    return MakeUrgentCudaStream();
  }
  std::unique_ptr<Event> MakeEvent() override {
    MakeCurrent();
    return MakeCudaEvent(false);
  }

 private:
  [[noreturn]] void ThrowOutOfMemory(size_t bytes) const {
    ForgetCudaError();
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw DeviceError(
        StrCat("cuda: out of memory on device ", id(), " asking for ", bytes >> 20,
               " MiB: ", free >> 20, " of ", total >> 20,
               " MiB are free; lower batch_size (caffe plan shows what a net needs)"));
  }

  const int gpu_;
  std::unique_ptr<Stream> stream_;
  const std::unique_ptr<Stream> default_stream_ = DefaultCudaStream();
};

// A chip that nets are planned for without it being present.
class DescribedCudaDevice final : public CudaDevice {
 public:
  explicit DescribedCudaDevice(ChipProperties chip) : CudaDevice(-1, std::move(chip)) {}

  std::string description() const override {
    return Describe(chip()) + ", described: no such device is used";
  }
  bool is_described() const override { return true; }
  std::optional<size_t> FreeBytes() override { return chip().memory_bytes; }

  std::shared_ptr<void> Allocate(size_t) override { ThrowDescribed(); }
  void CopyToHost(void*, const void*, size_t) override { ThrowDescribed(); }
  void CopyFromHost(void*, const void*, size_t) override { ThrowDescribed(); }
  void Synchronize() override { ThrowDescribed(); }

 private:
  [[noreturn]] void ThrowDescribed() const {
    throw DeviceError(StrCat("cuda: ", chip().name,
                             " is only described, so nets are planned for it but not run"));
  }
};

// Chips by the names that users give them, with the peaks of NVIDIA's data sheets ("T4 Tensor Core
// GPU", "A100 80GB", "L40S", "H100", "H200" and "HGX B200"): of the SXM module if there is one,
// without sparsity. The links are NVLink, half of the data sheet's sum of both directions; T4 and
// L40S have PCI Express 3.0 x16 and 4.0 x16.
const std::array<ChipProperties, 6> kKnownChips = {{
    {"T4", 7, 5, 40, size_t{15} << 30, 65536, 256, {320e9, 8.1e12, 0.25e12, 8.1e12, 65e12, 16e9}},
    {"A100",
     8,
     0,
     108,
     size_t{79} << 30,
     166912,
     5120,
     {2039e9, 19.5e12, 19.5e12, 156e12, 312e12, 300e9}},
    {"L40S",
     8,
     9,
     142,
     size_t{44} << 30,
     101376,
     384,
     {864e9, 91.6e12, 1.4e12, 183e12, 362e12, 32e9}},
    {"H100",
     9,
     0,
     132,
     size_t{79} << 30,
     232448,
     5120,
     {3350e9, 67e12, 67e12, 494e12, 989e12, 450e9}},
    {"H200",
     9,
     0,
     132,
     size_t{139} << 30,
     232448,
     6144,
     {4800e9, 67e12, 67e12, 494e12, 989e12, 450e9}},
    {"B200",
     10,
     0,
     148,
     size_t{179} << 30,
     232448,
     8192,
     {8000e9, 80e12, 40e12, 1100e12, 2250e12, 900e9}},
}};

std::optional<DevicePeaks> PeaksOfChip(const Device& device) {
  return static_cast<const CudaDevice&>(device).chip().peaks;
}

std::shared_ptr<Device> DescribeChip(std::string_view name) {
  std::string known;
  for (const ChipProperties& chip : kKnownChips) {
    if (chip.name == name || StrCat(chip.compute_major, ".", chip.compute_minor) == name)
      return std::make_shared<DescribedCudaDevice>(chip);
    known += (known.empty() ? "" : ", ") + chip.name;
  }
  throw InvalidArgument(StrCat("no CUDA chip is known as '", name, "'; known are ", known,
                               " and their compute capabilities"));
}

// One object per device, so that nets on it share its stream and run in order. This also holds for
// nets in several threads: launches are in the order of the calls, and each net captures on its own
// stream.
std::shared_ptr<Device> MakeRealDevice(int id) {
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<Device>> devices;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Device>& device = devices[id];
  if (device == nullptr) {
    const int count = CountDevices();
    if (id < 0 || id >= count) {
      throw DeviceError(StrCat("cuda: there is no device ", id, "; this machine has ", count,
                               count > 0 ? StrCat(", numbered 0 to ", count - 1) : "",
                               " (CUDA_VISIBLE_DEVICES may hide some)"));
    }
    device = std::make_shared<RealCudaDevice>(id, id / DevicesPerGpu());
  }
  return device;
}

std::unique_ptr<Event> MakeTimedCudaEvent(Device& device) {
  device.MakeCurrent();
  return MakeCudaEvent(true);
}

const TimedEventRegistrar timed_event_registrar(DeviceKind::kCuda, MakeTimedCudaEvent);
const HostMemoryRegistrar host_memory_registrar(DeviceKind::kCuda, AllocatePinned);
const DevicePeaksRegistrar peaks_registrar(DeviceKind::kCuda, PeaksOfChip);
const ReservedMemoryRegistrar reserved_registrar(DeviceKind::kCuda, CudaReservedBytes);
const DeviceRegistrar registrar(DeviceKind::kCuda, {.make = MakeRealDevice,
                                                    .count = CountDevices,
                                                    .describe = DescribeChip});

}  // namespace
}  // namespace caffe::cuda
