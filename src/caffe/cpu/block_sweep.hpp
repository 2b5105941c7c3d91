// BlockSweep: one loop over many tensors, which are cut into blocks that threads share evenly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "caffe/cpu/parallel.hpp"

namespace caffe::cpu {

// The blocks depend only on the tensors. Sums over blocks that are added in the order of the blocks
// are therefore the same for any number of threads.
class BlockSweep {
 public:
  static constexpr int64_t kBlockElements = kPointwiseGrain;

  struct Block {
    size_t tensor;
    int64_t begin, end;  // elements of the tensor
    int64_t before;      // elements of all blocks before this one
  };

  // `counts`: the number of elements of each tensor.
  explicit BlockSweep(std::span<const int64_t> counts) {
    for (size_t i = 0; i < counts.size(); ++i) {
      for (int64_t begin = 0; begin < counts[i]; begin += kBlockElements) {
        const int64_t end = std::min(begin + kBlockElements, counts[i]);
        blocks_.push_back({i, begin, end, elements_});
        elements_ += end - begin;
      }
    }
  }

  const std::vector<Block>& blocks() const { return blocks_; }

  // Calls fn(block, index) for each block, from the last to the first within a thread. A sweep that
  // follows a forward sweep finds the elements that were read last still in the cache.
  template <typename Fn>
  void RunBackwards(const Fn& fn) const {
    ForThreads([&](size_t first, size_t end) {
      for (size_t i = end; i-- > first;) fn(blocks_[i], i);
    });
  }
  template <typename Fn>
  void Run(const Fn& fn) const {
    ForThreads([&](size_t first, size_t end) {
      for (size_t i = first; i < end; ++i) fn(blocks_[i], i);
    });
  }

 private:
  // Calls fn(first, end) with the range of blocks of each thread.
  template <typename Fn>
  void ForThreads(const Fn& fn) const {
    ParallelFor(elements_, kBlockElements,
                [&](int64_t begin, int64_t end) { fn(FirstFrom(begin), FirstFrom(end)); });
  }

  // The first block that begins at or after this element, counted over all tensors.
  size_t FirstFrom(int64_t element) const {
    const auto is_before = [](const Block& block, int64_t at) { return block.before < at; };
    return std::lower_bound(blocks_.begin(), blocks_.end(), element, is_before) - blocks_.begin();
  }

  std::vector<Block> blocks_;
  int64_t elements_ = 0;
};

}  // namespace caffe::cpu
