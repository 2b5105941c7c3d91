// The library in NCCL's place for ranks that share a GPU, on an emulated one. Its kernels that wait
// for each other need a real one.
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "nccl.h"
#include "work_queue.hpp"

// Beside nccl.cpp's.
#define ncclComm OneGpuComm
#define ncclComm_t OneGpuComm_t
#define ncclGetVersion OneGpuGetVersion
#define ncclGetUniqueId OneGpuGetUniqueId
#define ncclCommInitRankConfig OneGpuCommInitRankConfig
#define ncclCommGetAsyncError OneGpuCommGetAsyncError
#define ncclCommFinalize OneGpuCommFinalize
#define ncclCommDestroy OneGpuCommDestroy
#define ncclCommAbort OneGpuCommAbort
#define ncclAllReduce OneGpuAllReduce
#define ncclGroupStart OneGpuGroupStart
#define ncclGroupEnd OneGpuGroupEnd
#define ncclGetErrorString OneGpuGetErrorString
using OneGpuComm_t = struct OneGpuComm*;
#pragma GCC diagnostic ignored "-Wsubobject-linkage"  // of a source that is included
#include "tests/one_gpu/nccl.cu"

namespace caffe {
namespace {

// The driver may wait for the GPU while it makes an event, and the GPU for a rank whose thread then
// waits for the driver.
TEST(CudaOneGpuTest, AReductionMakesNothing) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::array<ncclComm_t, 2> ranks;
  std::array<cudaStream_t, 2> streams;
  std::array<std::vector<float>, 2> numbers;
  ncclConfig_t config{.blocking = 0};
  for (int rank = 0; rank < 2; ++rank) {
    ncclCommInitRankConfig(&ranks[rank], 2, id, rank, &config);
    cudaStreamCreateWithFlags(&streams[rank], cudaStreamNonBlocking);
  }
  const int64_t before = cuda_on_host::ObjectsMadeSoFar();
  for (int round = 0; round < 3; ++round) {
    numbers = {std::vector<float>{1, 2}, std::vector<float>{3, float(round)}};
    for (int rank = 0; rank < 2; ++rank) {
      float* const data = numbers[rank].data();
      EXPECT_EQ(ncclAllReduce(data, data, 2, ncclFloat32, ncclAvg, ranks[rank], streams[rank]),
                ncclInProgress);
    }
    for (int rank = 0; rank < 2; ++rank) {
      ncclResult_t state = ncclInProgress;
      ncclCommGetAsyncError(ranks[rank], &state);
      EXPECT_EQ(state, ncclSuccess);
      cudaStreamSynchronize(streams[rank]);
      EXPECT_EQ(numbers[rank], (std::vector<float>{2, 1 + float(round) / 2}));
    }
  }
  EXPECT_EQ(cuda_on_host::ObjectsMadeSoFar(), before);
  for (int rank = 0; rank < 2; ++rank) {
    ncclCommDestroy(ranks[rank]);
    cudaStreamDestroy(streams[rank]);
  }
}

}  // namespace
}  // namespace caffe
