// One launch for many tensors: they are divided into chunks, which blocks process in turn.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "caffe/cuda/launch.cuh"

namespace caffe::cuda {

// Elements in a chunk.
inline constexpr int64_t kChunk = 16 * kBlockThreads;

// Chunk c belongs to the last tensor whose first_chunk is at most c.
struct Chunks {
  const int64_t* first_chunk;  // one per tensor, then the total number of chunks
  int tensors;

  __device__ int64_t count() const { return first_chunk[tensors]; }
  __device__ int TensorOf(int64_t chunk) const {
    int at = 0;
    for (int end = tensors; end - at > 1;) {
      const int middle = (at + end) / 2;
      (first_chunk[middle] <= chunk ? at : end) = middle;
    }
    return at;
  }
  // Offset of the chunk's first element in its tensor.
  __device__ int64_t Begin(int64_t chunk, int tensor) const {
    return (chunk - first_chunk[tensor]) * kChunk;
  }
};

// A kernel's per-tensor data, an Entry each, in device memory: too much for a launch's arguments,
// and sent again only when an address has changed.
class TensorTable {
 public:
  // `counts` are the elements of each tensor.
  TensorTable(const std::vector<int64_t>& counts, size_t entry_bytes, Device& device)
      : first_chunk_(1, 0) {
    for (const int64_t count : counts)
      first_chunk_.push_back(first_chunk_.back() + (count + kChunk - 1) / kChunk);
    if (device.is_described()) return;
    const size_t chunk_bytes = first_chunk_.size() * sizeof(int64_t);
    on_device_ = device.Allocate(chunk_bytes);
    device.CopyFromHost(on_device_.get(), first_chunk_.data(), chunk_bytes);
    entries_ = device.Allocate(counts.size() * entry_bytes);
  }

  int size() const { return static_cast<int>(first_chunk_.size()) - 1; }
  int64_t num_chunks() const { return first_chunk_.back(); }
  // One block per chunk, up to the maximum of a grid.
  int64_t blocks() const { return std::min(num_chunks(), kMaxBlocks); }
  Chunks chunks() const { return {static_cast<const int64_t*>(on_device_.get()), size()}; }

  // make(i) returns tensor i's entry in this context.
  template <typename Make>
  auto Send(const KernelContext& ctx, const Make& make) -> const decltype(make(size_t{}))* {
    using Entry = decltype(make(size_t{}));
    if (HasMoved(ctx)) {
      std::vector<Entry> entries;
      for (size_t i = 0; i + 1 < first_chunk_.size(); ++i) entries.push_back(make(i));
      ctx.stream->CopyFromHost(entries_.get(), entries.data(), entries.size() * sizeof(Entry));
    }
    return static_cast<const Entry*>(entries_.get());
  }

 private:
  // Stores the context's addresses; returns true if they have changed.
  bool HasMoved(const KernelContext& ctx) {
    std::vector<const void*>& now = addresses_;
    now.clear();
    for (const TensorView& view : ctx.inputs) now.push_back(view.data);
    for (const TensorView& view : ctx.outputs) now.push_back(view.data);
    if (now == sent_) return false;
    sent_ = now;
    return true;
  }

  std::vector<int64_t> first_chunk_;
  std::shared_ptr<void> on_device_, entries_;
  std::vector<const void*> addresses_, sent_;
};

}  // namespace caffe::cuda
