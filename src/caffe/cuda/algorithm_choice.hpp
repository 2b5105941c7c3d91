// Which of a vendor's algorithms serves an op: the first that its heuristics propose, or the
// fastest of the first few, timed once per chip.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/cuda/cuda_device.hpp"
#include "caffe/device/algorithm_cache.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// Algorithms that are timed, of those that a library's heuristics put first.
inline constexpr int kTimedAlgorithms = 8;

// Whether algorithms are timed for this request. Not for a chip that is only described; not with
// `deterministic`, because two algorithms round differently and two timings may disagree on which
// is faster; not with CAFFE_TIME_ALGORITHMS=0 in the environment.
bool AreAlgorithmsTimed(const KernelRequest& request);

// What a timing holds for: the op, its operands' shapes, types and layouts, the settings.
std::string ProblemOf(const KernelRequest& request);

// The key of a problem in the cache: no other chip and no other version of the library shares it.
std::string AlgorithmKey(const CudaDevice& device, std::string_view library, size_t version,
                         std::string_view problem);

// Asked before each run of an algorithm; false: leave it out. Where the device is lost, the last
// one that was asked for has cost it.
using MayTryAlgorithm = std::function<bool(size_t algorithm)>;

// Seconds that each candidate took, infinity for one that does not run; empty where none could be
// tried.
using AlgorithmTimer = std::function<std::vector<double>(const MayTryAlgorithm& may_try)>;

// Index of the candidate to take: the one that the cache has for the key, else the fastest, which
// the cache then has. The timer is not called where there is one candidate or a known one. Where
// nothing could be timed, the first that no earlier process was lost with, and the cache learns
// nothing.
size_t ChooseAlgorithm(AlgorithmCache& cache, const std::string& key,
                       std::span<const std::string> names, const AlgorithmTimer& timer);

// Starts one algorithm on the device's compute stream, in buffers of its own; false where it cannot
// run.
using AlgorithmLaunch = std::function<bool(size_t algorithm, std::span<void* const> buffers)>;

struct TimedBuffer {
  size_t bytes = 0;
  std::optional<DType> numbers;  // nothing: scratch memory
  bool is_output = false;
};

// Times `count` algorithms, each by its best run, in buffers of their own. Numbers are drawn from
// the normal distribution: on zeros chips are faster, and not all algorithms by the same factor.
// Those count as not running whose outputs are not what most of them make: before the first run,
// outputs and scratch memory have what is no number. Empty where the device has no memory for them.
std::vector<double> TimeAlgorithms(Device& device, std::span<const TimedBuffer> buffers,
                                   size_t count, const AlgorithmLaunch& launch,
                                   const MayTryAlgorithm& may_try);

}  // namespace caffe::cuda
