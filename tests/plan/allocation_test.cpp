// Training allocates no memory in the steady state: counts operator new during iterations.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/solver.hpp"

// The replaced operators form a pair, which g++ does not recognise once it has inlined one of them.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace {

constexpr int kMaxRecorded = 64;
std::atomic<bool> is_counting = false;
std::atomic<int> ours = 0, theirs = 0;
std::array<void*, kMaxRecorded> callers;  // of our allocations

bool IsLibrary(void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return false;
  return std::strstr(info.dli_fname, "dnnl") != nullptr ||
         std::strstr(info.dli_fname, "gomp") != nullptr;
}

void* Allocate(size_t bytes, size_t alignment, void* caller) {
  if (is_counting) {
    if (IsLibrary(caller)) {
      ++theirs;
    } else {
      const int index = ours++;
      if (index < kMaxRecorded) callers[index] = caller;
    }
  }
  bytes = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t) ? std::malloc(bytes)
                                                        : std::aligned_alloc(alignment, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) {
  return Allocate(bytes, 1, __builtin_return_address(0));
}
void* operator new[](size_t bytes) {
  return Allocate(bytes, 1, __builtin_return_address(0));
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}
// std::stable_sort allocates its buffer this way.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, 1, __builtin_return_address(0));
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, 1, __builtin_return_address(0));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace caffe {
namespace {

constexpr char kLeNet[] = R"(
  name: 'lenet'
  layer { name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param {
    shape { dim: 8 dim: 1 dim: 28 dim: 28 } shape { dim: 8 }
    data_filler { type: 'gaussian' std: 1 } data_filler { type: 'constant' value: 3 } } }
  layer { name: 'conv1' type: 'Convolution' bottom: 'data' top: 'conv1'
    convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: 'xavier' } } }
  layer { name: 'pool1' type: 'Pooling' bottom: 'conv1' top: 'pool1'
    pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
  layer { name: 'conv2' type: 'Convolution' bottom: 'pool1' top: 'conv2'
    convolution_param { num_output: 50 kernel_size: 5 weight_filler { type: 'xavier' } } }
  layer { name: 'bn' type: 'BatchNorm' bottom: 'conv2' top: 'conv2' }
  layer { name: 'scale' type: 'Scale' bottom: 'conv2' top: 'conv2' scale_param { bias_term: true } }
  layer { name: 'relu2' type: 'ReLU' bottom: 'conv2' top: 'conv2' }
  layer { name: 'norm' type: 'LRN' bottom: 'conv2' top: 'norm' }
  layer { name: 'pool2' type: 'Pooling' bottom: 'norm' top: 'pool2'
    pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
  layer { name: 'ip1' type: 'InnerProduct' bottom: 'pool2' top: 'ip1'
    inner_product_param { num_output: 100 weight_filler { type: 'xavier' } } }
  layer { name: 'relu1' type: 'ReLU' bottom: 'ip1' top: 'ip1' }
  layer { name: 'drop' type: 'Dropout' bottom: 'ip1' top: 'ip1' }
  layer { name: 'ip2' type: 'InnerProduct' bottom: 'ip1' top: 'ip2'
    inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }
  layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label' top: 'loss' }
  layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip2' bottom: 'label' top: 'accuracy' }
)";

void ExpectNoAllocations(const std::string& header, bool keep_all) {
  SolverParameter param;
  ParseTextProto(
      "base_lr: 0.01 lr_policy: 'step' gamma: 0.1 stepsize: 2 momentum: 0.9 weight_decay: 0.001 "
      "clip_gradients: 10 display: 0 max_iter: 100 random_seed: 3 solver_mode: CPU net_param { " +
          header + kLeNet + " }",
      "test", &param);
  Solver solver(param, {.keep_all = keep_all});
  solver.Step(2);
  ours = theirs = 0;
  is_counting = true;
  solver.Step(3);
  is_counting = false;
  ::testing::Test::RecordProperty("library_allocations", theirs.load());
  std::printf("operator new in 3 iterations: %d by us, %d by libdnnl and libgomp\n", ours.load(),
              theirs.load());
  EXPECT_EQ(ours, 0);
  for (int i = 0; i < std::min(ours.load(), 20); ++i) {
    Dl_info info{};
    dladdr(callers[i], &info);
    std::printf(
        "  %s+0x%zx %s\n", info.dli_fname,
        static_cast<size_t>(static_cast<char*>(callers[i]) - static_cast<char*>(info.dli_fbase)),
        info.dli_sname != nullptr ? info.dli_sname : "");
  }
}

TEST(AllocationTest, TheCounterCounts) {
  ours = 0;
  is_counting = true;
  delete[] new char[100];
  int* volatile escaped = new int(5);
  is_counting = false;
  delete escaped;
  EXPECT_GE(ours, 1);
}

TEST(AllocationTest, TrainingAllocatesNothing) {
  ExpectNoAllocations("", false);
}
TEST(AllocationTest, KeepAllAllocatesNothing) {
  ExpectNoAllocations("", true);
}
TEST(AllocationTest, BFloat16AllocatesNothing) {
  ExpectNoAllocations("default_forward_type: BFLOAT16 default_backward_type: BFLOAT16 ", false);
}

}  // namespace
}  // namespace caffe
