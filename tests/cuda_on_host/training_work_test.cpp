// The work that training submits to the emulated device: launches, and copies that would make the
// host wait. The results are compared in tests/gpu_training.
#include <gtest/gtest.h>

#include "caffe/common.hpp"
#include "caffe/solver.hpp"
#include "tests/gpu_training/small_net.hpp"
#include "tests/gpu_training/transformed_images.hpp"
#include "work_queue.hpp"

namespace caffe {
namespace {

using testing::SmallSolver;

TEST(ReplayedCudaTrainingTest, AnIterationIsOneLaunchAndTheDataFromTheHost) {
  const auto launches_of = [](const char* options) {
    Caffe::set_mode(Caffe::GPU);
    Solver solver(SmallSolver(options), {.keep_all = false});
    Caffe::set_mode(Caffe::CPU);
    solver.Step(3);
    cuda_on_host::Launches launches = cuda_on_host::LaunchesSoFar();
    solver.Step(2);
    const cuda_on_host::Launches after = cuda_on_host::LaunchesSoFar();
    return cuda_on_host::Launches{after.graphs - launches.graphs, after.singly - launches.singly};
  };
  using cuda_on_host::Launches;
  const int data = 1;  // one copy; labels are constant
  for (const char* options : {"type: 'SGD' base_lr: 0.05", "type: 'LAMB' base_lr: 0.01",
                              "type: 'SGD' base_lr: 0.05 clip_gradients: 0.1"}) {
    EXPECT_EQ(launches_of(options), (Launches{.graphs = 2, .singly = 2 * data})) << options;
  }
  EXPECT_EQ(launches_of("type: 'Adam' base_lr: 0.01 iter_size: 3"),
            (Launches{.graphs = 2 * 3, .singly = 2 * 3 * data}));
  // Running statistics are saved before the pass, because a step may be skipped.
  EXPECT_EQ(launches_of("type: 'SGD' base_lr: 0.05 precision: FP16"),
            (Launches{.graphs = 2, .singly = 2 * (data + 1)}));
  // Displayed iterations wait for the loss, so the update comes after it, and measure the norm of
  // all gradients.
  const int norm = 3;
  const Launches displayed = launches_of("type: 'SGD' base_lr: 0.05 display: 1");
  EXPECT_EQ(displayed, (Launches{.graphs = 2, .singly = 2 * (data + 1 + norm)}));
}

// The driver may wait for the device before it reads or writes ordinary memory.
TEST(CudaCopiesTest, AnIterationCopiesNoPageableMemory) {
  Caffe::set_mode(Caffe::GPU);
  Solver solver(SmallSolver("base_lr: 0.05 momentum: 0.9 lr_policy: 'exp' gamma: 0.9"),
                {.keep_all = false});
  Caffe::set_mode(Caffe::CPU);
  solver.Step(3);
  const int64_t before = cuda_on_host::PageableCopiesSoFar();
  solver.Step(40);  // more than the ring's slots
  EXPECT_EQ(cuda_on_host::PageableCopiesSoFar(), before);
}

class CudaImageCopiesTest : public testing::TransformedImages {};

TEST_F(CudaImageCopiesTest, BatchesComeFromMemoryThatIsPinned) {
  WriteGrayImages();
  for (const char* options : {"", "default_forward_type: FLOAT16"}) {
    for (const char* transform : {"scale: 0.01", "scale: 0.01 use_gpu_transform: true"}) {
      SCOPED_TRACE(StrCat(options, transform));
      const auto net = Make(Caffe::GPU, options, 5, transform);
      int64_t pageable = 0;
      for (int round = 0; round < 2; ++round) {
        net->ClearParamDiffs();
        pageable = cuda_on_host::PageableCopiesSoFar();  // the first round also sends the weights
        for (int pass = 0; pass < 4; ++pass) net->LaunchForwardBackward();
        for (int pass = 0; pass < 4; ++pass) net->AwaitLoss();
      }
      EXPECT_EQ(cuda_on_host::PageableCopiesSoFar(), pageable);
    }
  }
}

// While memory is pinned the driver may wait for all GPUs, and after the first iterations one of
// them may be waiting for another.
TEST_F(CudaImageCopiesTest, AllBatchesArePinnedWithTheFirst) {
  WriteGrayImages();
  for (const char* transform : {"scale: 0.01", "scale: 0.01 use_gpu_transform: true"}) {
    SCOPED_TRACE(transform);
    const auto net = Make(Caffe::GPU, "", 5, transform);
    const auto pass = [&] {
      net->LaunchForwardBackward();
      net->AwaitLoss();
    };
    pass();
    const int64_t pinned = cuda_on_host::PinnedAllocationsSoFar(0);
    for (int i = 0; i < 8; ++i) pass();  // more than batches are prepared ahead
    EXPECT_EQ(cuda_on_host::PinnedAllocationsSoFar(0), pinned);
  }
}

}  // namespace
}  // namespace caffe
