#include "caffe/cuda/cudnn_handle.hpp"

#include <map>
#include <mutex>
#include <vector>

#include "caffe/cuda/cudnn_error.hpp"
#include "caffe/error.hpp"

namespace caffe::cuda {
namespace {

// Handles not used by any thread, by device. Never destroyed: threads end after static objects do.
class IdleHandles {
 public:
  static IdleHandles& Get() {
    static IdleHandles* const handles = new IdleHandles;
    return *handles;
  }
  cudnnHandle_t Take(int device) {
    const std::lock_guard lock(mutex_);
    std::vector<cudnnHandle_t>& idle = idle_[device];
    if (idle.empty()) return nullptr;
    const cudnnHandle_t handle = idle.back();
    idle.pop_back();
    return handle;
  }
  void Give(int device, cudnnHandle_t handle) {
    const std::lock_guard lock(mutex_);
    idle_[device].push_back(handle);
  }

 private:
  std::mutex mutex_;
  std::map<int, std::vector<cudnnHandle_t>> idle_;
};

struct HandlesOfThread {
  ~HandlesOfThread() {
    for (const auto& [device, handle] : handles) IdleHandles::Get().Give(device, handle);
  }
  std::map<int, cudnnHandle_t> handles;
};

}  // namespace

void CheckCudnn(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) throw DeviceError(CudnnErrorText(status, call));
}

cudnnHandle_t CudnnHandleOf(CudaDevice& device) {
  if (device.is_described()) return nullptr;
  device.MakeCurrent();
  thread_local HandlesOfThread mine;
  const auto found = mine.handles.find(device.id());
  if (found != mine.handles.end()) return found->second;
  cudnnHandle_t handle = IdleHandles::Get().Take(device.id());
  if (handle == nullptr) {
    // cuDNN requires that no two threads create the first handle at the same time.
    static std::mutex creation;
    const std::lock_guard lock(creation);
    CheckCudnn(cudnnCreate(&handle), "cudnnCreate");
  }
  mine.handles[device.id()] = handle;
  return handle;
}

}  // namespace caffe::cuda
