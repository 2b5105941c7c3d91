// OperandGuard: makes AddressSanitizer detect a step that leaves the memory of its operands.
#pragma once

#include <cstddef>

#include "caffe/core/address_sanitizer.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe {

// While it lives, only one step's operands are accessible in the arena, which is one allocation for
// many tensors. Does nothing in builds without AddressSanitizer.
class OperandGuard {
 public:
  // `arena` is null for memory that the sanitizer does not track, as on a GPU.
  OperandGuard([[maybe_unused]] const void* arena, [[maybe_unused]] size_t bytes,
               [[maybe_unused]] const KernelContext& context) {
#if CAFFE_ADDRESS_SANITIZER
    if (arena == nullptr) return;
    arena_ = static_cast<const char*>(arena);
    bytes_ = bytes;
    ASAN_POISON_MEMORY_REGION(arena_, bytes_);
    for (const TensorView& operand : context.inputs) Allow(operand);
    for (const TensorView& operand : context.outputs) Allow(operand);
#endif
  }
  OperandGuard(const OperandGuard&) = delete;
  OperandGuard& operator=(const OperandGuard&) = delete;

#if CAFFE_ADDRESS_SANITIZER
  ~OperandGuard() {
    ASAN_UNPOISON_MEMORY_REGION(arena_, bytes_);
  }

 private:
  void Allow(const TensorView& operand) const {
    const auto* const data = static_cast<const char*>(operand.data);
    const bool is_inside = data >= arena_ && data < arena_ + bytes_;
    if (is_inside) ASAN_UNPOISON_MEMORY_REGION(data, operand.bytes());
  }

  const char* arena_ = nullptr;
  size_t bytes_ = 0;
#endif
};

}  // namespace caffe
