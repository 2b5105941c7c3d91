// NCCL's communicators of the GPUs that one process drives.
#pragma once

#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/distributed/nccl/nccl_library.hpp"

namespace caffe::nccl {

// None of its calls blocks inside NCCL: what takes time is asked for again and again, so that an
// error elsewhere ends it. Thread-safe.
class Group {
 public:
  // Called while something is waited for; throws what ends the waiting.
  using Check = std::function<void()>;

  // Text for all ranks of a run, made by one of them.
  static std::string NewId();

  // One communicator for each device, with numbers from `first_rank` on, of `ranks` in all. Returns
  // when all ranks have come. Throws DeviceError for what NCCL reports.
  Group(const std::string& id, int ranks, int first_rank,
        const std::vector<std::shared_ptr<Device>>& devices, const Check& check);
  // Waits a few seconds for the other ranks to end too.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // The mean over all ranks, in place, when `stream`, of that device, comes to it. False after an
  // abort.
  bool AllReduceMean(size_t index, void* data, size_t count, ncclDataType_t type, Stream& stream,
                     const Check& check);
  // Throws DeviceError for what has gone wrong in what was enqueued; false after an abort.
  bool IsWell(size_t index);
  // Ends what waits, on all devices of the process.
  void Abort();

 private:
  void SetReducing(bool is_reducing);
  bool WaitUntilReady(size_t index, const Check& check);
  ncclResult_t StateOf(size_t index);
  void AbortAll();

  const std::vector<std::shared_ptr<Device>> devices_;
  std::shared_mutex mutex_;  // held alone by an abort
  bool is_aborted_ = false;
  std::vector<ncclComm_t> communicators_;
};

}  // namespace caffe::nccl
