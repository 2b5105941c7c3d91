// NCCL between emulated devices of this process, for threads and for ranks that share only an id.
// It does what NCCL 2 documents for communicators that do not block: calls answer that they are in
// progress, and until they are done, other calls are errors; a reduction is work on its stream that
// waits for all ranks; an abort ends it. Any other use gets an error, or ends the program where
// NCCL may crash or hang.
#include "nccl.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "caffe/distributed/nccl/nccl_library.hpp"
#include "caffe/distributed/rank_order_sum.hpp"
#include "caffe/error.hpp"
#include "work_queue.hpp"

namespace {

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "emulated NCCL: %s\n", what);
  std::abort();
}

struct Reduction {
  std::vector<void*> data;  // by rank
  size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  int arrived = 0;
};

// The ranks that share an id.
struct Session {
  explicit Session(int ranks) : communicators(ranks) {}
  std::mutex mutex;
  std::vector<ncclComm_t> communicators;  // by rank; null: has not joined
  int arrived = 0;
  std::set<int> devices;
  ncclResult_t error = ncclSuccess;
  std::map<uint64_t, Reduction> reductions;  // unfinished ones, by their number
};

caffe::DType DTypeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return caffe::DType::kInt8;
    case ncclUint8:
      return caffe::DType::kUInt8;
    case ncclFloat16:
      return caffe::DType::kFloat16;
    case ncclFloat32:
      return caffe::DType::kFloat;
    case ncclFloat64:
      return caffe::DType::kDouble;
    case ncclBfloat16:
      return caffe::DType::kBFloat16;
  }
  Fail("an unknown type");
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Session> session;
  int rank = 0, device = 0;
  bool blocks = true;
  std::thread::id made_by = {};
  std::atomic<bool> has_ended = false;  // destroyed or aborted
  int in_progress_times = 0;            // how often the next answers say so
  std::atomic<uint64_t> enqueued = 0, done = 0;
};

namespace {

std::mutex mutex;
std::map<std::string, std::shared_ptr<Session>> sessions;
std::vector<std::unique_ptr<ncclComm>> all;  // includes ended ones, to recognise them
thread_local int groups = 0;

// Returns whether the same thread made another communicator of the session that has not ended.
bool HasSibling(const ncclComm& communicator, const Session& session) {
  return std::ranges::any_of(session.communicators, [&](const ncclComm* other) {
    return other != nullptr && other != &communicator && !other->has_ended &&
           other->made_by == communicator.made_by;
  });
}

ncclResult_t StateOf(ncclComm& communicator) {
  Session& session = *communicator.session;
  const std::lock_guard lock(session.mutex);
  if (session.error != ncclSuccess) return session.error;
  if (session.arrived < static_cast<int>(session.communicators.size())) return ncclInProgress;
  if (communicator.in_progress_times > 0) {
    --communicator.in_progress_times;
    return ncclInProgress;
  }
  return ncclSuccess;
}

void CheckAlive(const ncclComm* communicator) {
  if (communicator == nullptr || communicator->has_ended) Fail("a communicator that has ended");
}

// The stream calls this until it returns true.
bool Advance(ncclComm* communicator, uint64_t number, void* data, size_t count, ncclDataType_t type,
             bool* has_arrived) {
  Session& session = *communicator->session;
  const std::lock_guard lock(session.mutex);
  if (communicator->has_ended) return true;
  if (session.error != ncclSuccess) return false;  // until this rank also gives up
  if (!*has_arrived) {
    *has_arrived = true;
    Reduction& reduction = session.reductions[number];
    if (reduction.arrived == 0) {
      reduction.data.resize(session.communicators.size());
      reduction.count = count;
      reduction.type = type;
    }
    if (reduction.count != count || reduction.type != type) Fail("ranks reduce different tensors");
    reduction.data[communicator->rank] = data;
    if (++reduction.arrived == static_cast<int>(reduction.data.size())) {
      const caffe::DType dtype = DTypeOf(type);
      caffe::SumInRankOrder(dtype, dtype, reduction.data, reduction.data, 0,
                            static_cast<int64_t>(count),
                            1.0 / static_cast<double>(reduction.data.size()));
      session.reductions.erase(number);
    }
  }
  if (session.reductions.count(number) > 0) return false;
  communicator->done = number;
  return true;
}

}  // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int ids = 0;
  const std::lock_guard lock(mutex);
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "emulated %d", ++ids);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (rank < 0 || rank >= ranks) return ncclInvalidArgument;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Session>& session = sessions[id.internal];
  if (session == nullptr) session = std::make_shared<Session>(ranks);
  const std::lock_guard session_lock(session->mutex);
  if (static_cast<int>(session->communicators.size()) != ranks) return ncclInvalidArgument;
  if (session->communicators[rank] != nullptr) return ncclInvalidUsage;
  const int device = cuda_on_host::CurrentDevice();
  // NCCL's "Duplicate GPU detected".
  if (!session->devices.insert(device).second) session->error = ncclInvalidUsage;
  *communicator = all.emplace_back(new ncclComm{.session = session,
                                                .rank = rank,
                                                .device = device,
                                                .made_by = std::this_thread::get_id()})
                      .get();
  (*communicator)->blocks = config == nullptr || config->blocking != 0;
  if ((*communicator)->blocks) Fail("a communicator that blocks is not emulated");
  session->communicators[rank] = *communicator;
  ++session->arrived;
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* result) {
  CheckAlive(communicator);
  *result = StateOf(*communicator);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  CheckAlive(communicator);
  communicator->in_progress_times = 1;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  CheckAlive(communicator);
  if (communicator->done != communicator->enqueued) Fail("destroyed before its work is done");
  communicator->has_ended = true;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  CheckAlive(communicator);
  Session& session = *communicator->session;
  const std::lock_guard lock(session.mutex);
  // It would wait for that one's kernel, which nobody aborts.
  if (groups == 0 && HasSibling(*communicator, session)) Fail("aborts that are not of one group");
  communicator->has_ended = true;
  // The other ranks notice that its connections are closed.
  if (session.error == ncclSuccess) session.error = ncclRemoteError;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  CheckAlive(communicator);
  if (from != to || operation != ncclAvg) Fail("a reduction that is not emulated");
  if (stream == nullptr || communicator->device != cuda_on_host::WorkQueue::Of(stream).device() ||
      communicator->device != cuda_on_host::CurrentDevice()) {
    return ncclInvalidUsage;  // belongs to another device
  }
  if (StateOf(*communicator) != ncclSuccess) return ncclInvalidUsage;  // "still in progress"
  const uint64_t number = ++communicator->enqueued;
  cuda_on_host::WorkQueue::Of(stream).SubmitWaiting([=, has_arrived = false]() mutable {
    return Advance(communicator, number, to, count, type, &has_arrived);
  });
  communicator->in_progress_times = 2;
  return ncclInProgress;
}

ncclResult_t ncclGroupStart() {
  ++groups;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (groups-- == 0) return ncclInvalidUsage;
  return ncclInProgress;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclInvalidUsage  ? "invalid usage"
         : result == ncclRemoteError ? "remote process exited or there was a network error"
                                     : "an error";
}

bool cuda_on_host::IsReducing(int device) {
  const std::lock_guard lock(mutex);
  return std::ranges::any_of(all, [&](const std::unique_ptr<ncclComm>& one) {
    return one->device == device && !one->has_ended && one->done != one->enqueued;
  });
}

void cuda_on_host::CheckNoRankIsAwaited(const char* what) {
  const std::lock_guard lock(mutex);
  for (const std::unique_ptr<ncclComm>& ahead : all) {
    if (ahead->has_ended) continue;
    Session& session = *ahead->session;
    const std::lock_guard session_lock(session.mutex);
    if (session.error != ncclSuccess) continue;
    for (const ncclComm* late : session.communicators) {
      CAFFE_ASSERT(late == nullptr || late->has_ended || late->made_by != ahead->made_by ||
                       late->enqueued >= ahead->enqueued,
                   what, " while device ", ahead->device, " reduces and device ", late->device,
                   " has not begun to: the driver may wait for the first, and keep the second "
                   "waiting");
    }
  }
}

namespace caffe::nccl {

const Library& GetLibrary() {
  static const Library library{ncclGetUniqueId,   ncclCommInitRankConfig, ncclCommGetAsyncError,
                               ncclCommFinalize,  ncclCommDestroy,        ncclCommAbort,
                               ncclAllReduce,     ncclGroupStart,         ncclGroupEnd,
                               ncclGetErrorString};
  return library;
}

}  // namespace caffe::nccl
