// The NCCL functions that this project calls, for ranks that are threads of one process and share
// one GPU, which NCCL itself refuses. With it, streams, events, captures and launches of a real GPU
// can be tested together with reductions on a machine with one GPU:
//   CAFFE_TEST_RANKS_PER_GPU=2 CAFFE_CUDA_LIBRARY_PATH=FOLDER_OF_THIS caffe train -gpu 0,1 ...
// Communicators do not block, as in this project. A wrong call ends the program.
//
// CAFFE_TEST_NCCL_SPIN=1: each rank's part occupies a block of the GPU until the parts of all ranks
// have begun, like NCCL's kernels. So a host call that waits for the device while a rank is missing
// hangs. The wait ends after some seconds, with an error. So this library itself makes all that it
// needs, and loads its kernels, before the first reduction.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace {

constexpr int kMostRanks = 8;
constexpr long long kSpinClocks = 20'000'000'000;  // about ten seconds

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "NCCL on one GPU: %s\n", what.c_str());
  std::abort();
}

void Check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) Fail(std::string(call) + ": " + cudaGetErrorString(status));
}
#define CHECK(call) Check((call), #call)

struct Parts {
  void* data[kMostRanks];
};

// Sums in the order of the ranks, so that the result has the same bits each time.
template <typename T, typename Sum>
__global__ void Average(Parts parts, int ranks, size_t count) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    Sum sum = 0;
    for (int rank = 0; rank < ranks; ++rank)
      sum += static_cast<Sum>(static_cast<const T*>(parts.data[rank])[i]);
    const T mean = static_cast<T>(sum / static_cast<Sum>(ranks));
    for (int rank = 0; rank < ranks; ++rank) static_cast<T*>(parts.data[rank])[i] = mean;
  }
}

// `host`: [0] set on abort, which ends the wait; [1] becomes 1 if it took too long.
__global__ void Meet(unsigned* begun, unsigned wanted, volatile unsigned* host) {
  atomicAdd(begun, 1u);
  const long long begin = clock64();
  while (atomicAdd(begun, 0u) < wanted && host[0] == 0) {
    if (clock64() - begin > kSpinClocks) {
      host[1] = 1;
      return;
    }
  }
}

template <typename... Parameters>
void Launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
            Parameters... parameters) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = stream;
  CHECK(cudaLaunchKernelEx(&config, kernel, parameters...));
}

template <typename... Parameters>
void Load(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)));
}

void LoadKernels() {
  Load(Meet);
  Load(Average<float, float>);
  Load(Average<double, double>);
  Load(Average<__half, float>);
  Load(Average<__nv_bfloat16, float>);
}

cudaEvent_t MakeEvent() {
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

struct Reduction {
  Parts parts{};
  size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  int arrived = 0, gone = 0;
};

// The ranks that share an id. Lives as long as the process, because kernels may still read it.
struct Session {
  explicit Session(int ranks) : ranks(ranks), done(MakeEvent()) {
    LoadKernels();
    for (int rank = 0; rank < ranks; ++rank) filled[rank] = MakeEvent();
    CHECK(cudaStreamCreateWithFlags(&sums, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&begun, sizeof *begun));
    CHECK(cudaMemsetAsync(begun, 0, sizeof *begun, sums));
    CHECK(cudaStreamSynchronize(sums));
    void* memory;
    CHECK(cudaHostAlloc(&memory, 2 * sizeof(unsigned), cudaHostAllocMapped));
    std::memset(memory, 0, 2 * sizeof(unsigned));
    host = static_cast<volatile unsigned*>(memory);
  }

  const int ranks;
  // They mark where each rank has begun its last reduction, and where the last one ends that all
  // have begun. A rank begins one when it waits for the one before, so they are recorded again.
  std::array<cudaEvent_t, kMostRanks> filled{};
  const cudaEvent_t done;
  std::mutex mutex;
  int arrived = 0;
  bool is_aborted = false;
  std::array<unsigned, kMostRanks> begun_by{};  // reductions begun by each rank
  std::map<unsigned, Reduction> reductions;     // by number, until all ranks wait for the result
  unsigned* begun = nullptr;
  volatile unsigned* host = nullptr;
  cudaStream_t sums = nullptr;
};

std::mutex sessions_mutex;
std::map<std::string, std::shared_ptr<Session>> sessions;

[[noreturn]] void FailOf(const Session& session) {
  std::string ranks;
  for (int rank = 0; rank < session.ranks; ++rank)
    ranks += " " + std::to_string(session.begun_by[rank]);
  Fail("a rank waited too long on the GPU for another; reductions that each has begun:" + ranks);
}

bool Spins() {
  static const bool spins = std::getenv("CAFFE_TEST_NCCL_SPIN") != nullptr;
  return spins;
}

void StartAverage(const Reduction& reduction, int ranks, cudaStream_t stream) {
  constexpr int kBlocks = 132, kThreads = 256;
  const auto start = [&](auto* kernel) {
    Launch(kernel, kBlocks, kThreads, stream, reduction.parts, ranks, reduction.count);
  };
  switch (reduction.type) {
    case ncclFloat32:
      return start(Average<float, float>);
    case ncclFloat64:
      return start(Average<double, double>);
    case ncclFloat16:
      return start(Average<__half, float>);
    case ncclBfloat16:
      return start(Average<__nv_bfloat16, float>);
    default:
      Fail("a type that is not here");
  }
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Session> session;
  int rank;
  unsigned enqueued = 0, waited = 0;  // reductions
  cudaStream_t stream = nullptr;      // of the last reduction
};

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> made = 0;
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "one GPU %d", ++made);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config == nullptr || config->blocking != 0) Fail("a communicator that blocks");
  if (ranks > kMostRanks) Fail("more than 8 ranks");
  const std::lock_guard all(sessions_mutex);
  std::shared_ptr<Session>& session = sessions[id.internal];
  if (session == nullptr) session = std::make_shared<Session>(ranks);
  const std::lock_guard lock(session->mutex);
  ++session->arrived;
  *communicator = new ncclComm{session, rank};
  return ncclInProgress;
}

// In progress until the last rank has joined this reduction; NCCL may answer this, too.
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  Session& session = *communicator->session;
  const std::lock_guard lock(session.mutex);
  *state = ncclInProgress;
  if (session.host[1] != 0) FailOf(session);
  if (session.is_aborted) *state = ncclRemoteError;
  if (session.is_aborted || session.arrived < session.ranks) return ncclSuccess;
  if (communicator->waited != communicator->enqueued) {
    Reduction& reduction = session.reductions[communicator->enqueued];
    if (reduction.arrived < session.ranks) return ncclSuccess;
    CHECK(cudaStreamWaitEvent(communicator->stream, session.done, 0));
    communicator->waited = communicator->enqueued;
    if (++reduction.gone == session.ranks) session.reductions.erase(communicator->enqueued);
  }
  *state = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
  if (from != to || op != ncclAvg) Fail("a reduction that is not here");
  cudaStreamCaptureStatus capture;
  CHECK(cudaStreamIsCapturing(stream, &capture));
  if (capture != cudaStreamCaptureStatusNone) Fail("a reduction on a stream that captures");
  Session& session = *communicator->session;
  const std::lock_guard lock(session.mutex);
  if (session.is_aborted) return ncclRemoteError;
  if (communicator->waited != communicator->enqueued)
    Fail("a reduction before the one before it was ready");
  Reduction& reduction = session.reductions[++communicator->enqueued];
  if (reduction.arrived == 0) {
    reduction.count = count;
    reduction.type = type;
  }
  if (reduction.count != count || reduction.type != type) Fail("ranks reduce different tensors");
  reduction.parts.data[communicator->rank] = to;
  session.begun_by[communicator->rank] = communicator->enqueued;
  communicator->stream = stream;
  if (Spins()) {
    const unsigned wanted = communicator->enqueued * static_cast<unsigned>(session.ranks);
    Launch(Meet, 1, 1, stream, session.begun, wanted, session.host);
  }
  CHECK(cudaEventRecord(session.filled[communicator->rank], stream));
  if (++reduction.arrived < session.ranks) return ncclInProgress;
  for (int rank = 0; rank < session.ranks; ++rank)
    CHECK(cudaStreamWaitEvent(session.sums, session.filled[rank], 0));
  StartAverage(reduction, session.ranks, session.sums);
  CHECK(cudaEventRecord(session.done, session.sums));
  return ncclInProgress;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  Session& session = *communicator->session;
  const std::lock_guard lock(session.mutex);
  session.is_aborted = true;
  session.host[0] = 1;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) {
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "another rank has ended" : "an error";
}

}  // extern "C"
