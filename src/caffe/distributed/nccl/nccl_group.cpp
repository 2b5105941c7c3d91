#include "caffe/distributed/nccl/nccl_group.hpp"

#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "caffe/error.hpp"

namespace caffe::nccl {
namespace {

constexpr auto kPoll = std::chrono::microseconds(50);
constexpr auto kFarewell = std::chrono::seconds(5);

void CheckResult(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw DeviceError(StrCat("nccl: ", call, ": ", GetLibrary().GetErrorString(result),
                           "; NCCL_DEBUG=WARN tells more, and between machines NCCL_SOCKET_IFNAME "
                           "says which network to use"));
}

// Calls between its beginning and End() are one call of all communicators.
class GroupCall {
 public:
  GroupCall() { CheckResult(GetLibrary().GroupStart(), "ncclGroupStart"); }
  GroupCall(const GroupCall&) = delete;
  ~GroupCall() {
    if (is_open_) GetLibrary().GroupEnd();
  }
  void End() {
    is_open_ = false;
    CheckResult(GetLibrary().GroupEnd(), "ncclGroupEnd");
  }

 private:
  bool is_open_ = true;
};

ncclUniqueId IdFrom(const std::string& text) {
  ncclUniqueId id;
  CAFFE_ASSERT(text.size() == sizeof id.internal);
  std::memcpy(id.internal, text.data(), sizeof id.internal);
  return id;
}

}  // namespace

std::string Group::NewId() {
  ncclUniqueId id;
  CheckResult(GetLibrary().GetUniqueId(&id), "ncclGetUniqueId");
  return {id.internal, sizeof id.internal};
}

Group::Group(const std::string& id, int ranks, int first_rank,
             const std::vector<std::shared_ptr<Device>>& devices, const Check& check)
    : devices_(devices), communicators_(devices.size()) {
  const Library& library = GetLibrary();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  SetReducing(true);
  try {
    GroupCall group;
    for (size_t i = 0; i < devices_.size(); ++i) {
      devices_[i]->MakeCurrent();
      CheckResult(library.CommInitRankConfig(&communicators_[i], ranks, IdFrom(id),
                                             first_rank + static_cast<int>(i), &config),
                  "ncclCommInitRankConfig");
    }
    group.End();
    for (size_t i = 0; i < devices_.size(); ++i) WaitUntilReady(i, check);
  } catch (...) {
    Abort();
    SetReducing(false);
    throw;
  }
}

Group::~Group() {
  SetReducing(false);
  if (is_aborted_) return;
  const Library& library = GetLibrary();
  const auto deadline = std::chrono::steady_clock::now() + kFarewell;
  for (ncclComm_t communicator : communicators_) library.CommFinalize(communicator);
  bool are_all_done = true;
  for (size_t i = 0; i < communicators_.size(); ++i) {
    ncclResult_t state = ncclInProgress;
    const auto ask = [&] {
      return library.CommGetAsyncError(communicators_[i], &state) == ncclSuccess;
    };
    while (ask() && state == ncclInProgress && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(kPoll);
    }
    are_all_done = are_all_done && state == ncclSuccess;
  }
  if (are_all_done) {
    for (ncclComm_t communicator : communicators_) library.CommDestroy(communicator);
  } else {
    AbortAll();
  }
}

void Group::SetReducing(bool is_reducing) {
  if (devices_.size() < 2) return;
  for (const std::shared_ptr<Device>& device : devices_)
    device->set_reduces_with_others(is_reducing);
}

ncclResult_t Group::StateOf(size_t index) {
  ncclResult_t state = ncclSuccess;
  CheckResult(GetLibrary().CommGetAsyncError(communicators_[index], &state),
              "ncclCommGetAsyncError");
  return state;
}

// False after an abort.
bool Group::WaitUntilReady(size_t index, const Check& check) {
  while (true) {
    {
      const std::shared_lock lock(mutex_);
      if (is_aborted_) return false;
      const ncclResult_t state = StateOf(index);
      CheckResult(state, "a call under way");
      if (state == ncclSuccess) return true;
    }
    check();
    std::this_thread::sleep_for(kPoll);
  }
}

bool Group::AllReduceMean(size_t index, void* data, size_t count, ncclDataType_t type,
                          Stream& stream, const Check& check) {
  {
    const std::shared_lock lock(mutex_);
    if (is_aborted_) return false;
    CheckResult(GetLibrary().AllReduce(data, data, count, type, ncclAvg, communicators_[index],
                                       static_cast<cudaStream_t>(stream.native())),
                "ncclAllReduce");
  }
  return WaitUntilReady(index, check);
}

bool Group::IsWell(size_t index) {
  const std::shared_lock lock(mutex_);
  if (is_aborted_) return false;
  CheckResult(StateOf(index), "ncclAllReduce");
  return true;
}

void Group::Abort() {
  const std::lock_guard lock(mutex_);
  if (is_aborted_) return;
  is_aborted_ = true;
  AbortAll();
}

// As one call: the end of a communicator waits for the others of this process and for their
// kernels, which wait for their own abort.
void Group::AbortAll() {
  const Library& library = GetLibrary();
  library.GroupStart();
  for (ncclComm_t communicator : communicators_) {
    if (communicator != nullptr) library.CommAbort(communicator);
  }
  library.GroupEnd();
}

}  // namespace caffe::nccl
