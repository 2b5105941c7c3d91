// Training allocates nothing once it is under way. operator new is replaced in this program; calls
// from inside oneDNN, which builds a small argument list each time it runs, are told apart by the
// address that they come from.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "caffe/io/text_format.hpp"
#include "caffe/solver.hpp"

namespace {

std::atomic<bool> is_counting{false};
std::atomic<long> ours{0}, of_onednn{0};

void Count(void* caller) {
  if (!is_counting) return;
  Dl_info info;
  const bool known = dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
  const bool is_onednn =
      known && std::string_view(info.dli_fname).find("libdnnl") != std::string_view::npos;
  ++(is_onednn ? of_onednn : ours);
}

void* Allocate(size_t bytes, size_t alignment) {
  void* memory = alignment == 0 ? std::malloc(bytes)
                                : std::aligned_alloc(
                                      alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) {
  Count(__builtin_return_address(0));
  return Allocate(bytes, 0);
}
void* operator new[](size_t bytes) {
  Count(__builtin_return_address(0));
  return Allocate(bytes, 0);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  Count(__builtin_return_address(0));
  return Allocate(bytes, static_cast<size_t>(alignment));
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
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace caffe {
namespace {

constexpr const char* kSolver = R"pb(
  base_lr: 0.01
  lr_policy: "inv"
  gamma: 0.0001
  power: 0.75
  momentum: 0.9
  weight_decay: 0.0005
  max_iter: 1000
  random_seed: 3
  display: 0
  clip_gradients: 100
  iter_size: 2
  net_param {
    name: "allocation"
    layer {
      name: "data"
      type: "DummyData"
      top: "data"
      top: "label"
      dummy_data_param {
        shape { dim: 8 dim: 3 dim: 16 dim: 16 }
        shape { dim: 8 }
      }
    }
    layer {
      name: "conv"
      type: "Convolution"
      bottom: "data"
      top: "conv"
      convolution_param {
        num_output: 8
        kernel_size: 3
        pad: 1
        weight_filler { type: "xavier" }
      }
    }
    layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }
    layer {
      name: "scale"
      type: "Scale"
      bottom: "conv"
      top: "conv"
      scale_param { bias_term: true }
    }
    layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
    layer { name: "norm" type: "LRN" bottom: "conv" top: "norm" }
    layer {
      name: "pool"
      type: "Pooling"
      bottom: "norm"
      top: "pool"
      pooling_param { kernel_size: 2 stride: 2 }
    }
    layer {
      name: "branch"
      type: "Convolution"
      bottom: "pool"
      top: "branch"
      convolution_param {
        num_output: 8
        kernel_size: 1
        weight_filler { type: "xavier" }
      }
    }
    layer { name: "sum" type: "Eltwise" bottom: "pool" bottom: "branch" top: "sum" }
    layer { name: "concat" type: "Concat" bottom: "sum" bottom: "pool" top: "concat" }
    layer {
      name: "ip"
      type: "InnerProduct"
      bottom: "concat"
      top: "ip"
      inner_product_param {
        num_output: 10
        weight_filler { type: "xavier" }
      }
    }
    layer { name: "drop" type: "Dropout" bottom: "ip" top: "ip" }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
  }
)pb";

TEST(AllocationTest, TheCounterCounts) {
  ours = 0;
  is_counting = true;
  const auto vector = std::make_unique<std::vector<int>>(100);
  is_counting = false;
  EXPECT_EQ(ours, 2);
  EXPECT_EQ(vector->size(), 100u);
}

TEST(AllocationTest, SteadyStateAllocatesNothing) {
  SolverParameter param;
  ParseTextProto(kSolver, "solver", &param);
  Solver solver(param, {.keep_all = false});
  solver.Step(2);
  ours = of_onednn = 0;
  bool is_second = false;
  // Counted from the middle of one iteration to the middle of the next: what Step itself sets up
  // for its loop is not part of an iteration.
  solver.AddCallbacks({.on_gradients_ready = [&] { is_counting = !is_second, is_second = true; }});
  solver.Step(2);
  is_counting = false;
  EXPECT_EQ(ours, 0) << "allocations of ours in one iteration (oneDNN made " << of_onednn << ")";
}

}  // namespace
}  // namespace caffe
