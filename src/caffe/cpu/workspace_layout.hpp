// WorkspaceLayout: divides a kernel's workspace into parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

// Parts begin at cache lines.
class WorkspaceLayout {
 public:
  // Returns the byte offset of a new part.
  size_t Add(size_t bytes) {
    const size_t offset = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  // The same for `count` numbers.
  template <typename N>
  size_t Add(int64_t count) {
    return Add(static_cast<size_t>(count) * sizeof(N));
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

// The numbers at an offset of the workspace.
template <typename N>
N* WorkspaceAt(const KernelContext& ctx, size_t offset) {
  return reinterpret_cast<N*>(static_cast<char*>(ctx.workspace) + offset);
}

}  // namespace caffe::cpu
