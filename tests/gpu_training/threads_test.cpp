// Nets in several threads on one GPU, and the order of copies.
#include <gtest/gtest.h>

#include <cstring>
#include <exception>
#include <thread>

#include "caffe/common.hpp"
#include "caffe/device/device.hpp"
#include "caffe/solver.hpp"
#include "tests/gpu_training/small_net.hpp"

namespace caffe {
namespace {

std::unique_ptr<Solver> MakeSolver(int seed) {
  SolverParameter param =
      testing::SmallSolver("base_lr: 0.05 momentum: 0.9 lr_policy: 'exp' gamma: 0.9");
  param.set_random_seed(seed);
  Caffe::set_mode(Caffe::GPU);
  auto solver = std::make_unique<Solver>(param, SolverOptions{.keep_all = false});
  Caffe::set_mode(Caffe::CPU);
  return solver;
}

std::vector<float> ValuesOf(Solver& solver) {
  std::vector<float> weights;
  for (const Net::LearnableParam& param : solver.net().learnable_params()) {
    const float* values = param.blob->cpu_data<float>();
    weights.insert(weights.end(), values, values + param.blob->count());
  }
  return weights;
}

constexpr int kIterations = 12;

// Each net captures, replays and reads while the other one does. This thread makes both nets.
TEST(CudaThreadsTest, NetsInTwoThreadsComeToWhatEachComesToAlone) {
  std::vector<std::vector<float>> alone, together;
  for (int seed = 1; seed <= 2; ++seed) {
    const std::unique_ptr<Solver> solver = MakeSolver(seed);
    solver->Step(kIterations);
    alone.push_back(ValuesOf(*solver));
  }
  const std::vector<std::unique_ptr<Solver>> solvers = [] {
    std::vector<std::unique_ptr<Solver>> made;
    for (int seed = 1; seed <= 2; ++seed) made.push_back(MakeSolver(seed));
    return made;
  }();
  std::vector<std::exception_ptr> errors(2);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      try {
        for (int step = 0; step < kIterations; ++step) {
          solvers[i]->Step(1);
          ValuesOf(*solvers[i]);
        }
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  for (const std::unique_ptr<Solver>& solver : solvers) together.push_back(ValuesOf(*solver));
  EXPECT_EQ(together, alone);
}

// If a slot was reused too early, an earlier copy would bring other values.
TEST(CudaCopiesTest, SmallCopiesBringWhatWasThereWhenTheyWereMade) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  constexpr int kCopies = 200;
  const std::shared_ptr<void> memory = device->Allocate(kCopies * 20000);
  auto* const to = static_cast<char*>(memory.get());
  std::vector<char> from(20000);
  for (int i = 0; i < kCopies; ++i) {
    std::memset(from.data(), i, from.size());
    device->compute_stream().CopyFromHost(to + i * from.size(), from.data(), from.size());
  }
  std::vector<char> back(kCopies * from.size());
  device->CopyToHost(back.data(), to, back.size());
  for (int i = 0; i < kCopies; ++i) {
    const std::vector<char> expected(from.size(), static_cast<char>(i));
    ASSERT_EQ(std::memcmp(back.data() + i * from.size(), expected.data(), expected.size()), 0) << i;
  }
}

}  // namespace
}  // namespace caffe
