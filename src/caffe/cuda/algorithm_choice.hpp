// Chooses a vendor library's algorithm for an op: the first that its heuristics propose, or the
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

// Number of algorithms that are timed, out of those that a library's heuristics rank first.
inline constexpr int kTimedAlgorithms = 8;

// True if algorithms are timed for this request. Not for a chip that is only described; not with
// `deterministic`, because two algorithms round differently and two timings may disagree on which
// is faster; not with CAFFE_TIME_ALGORITHMS=0 in the environment.
bool AreAlgorithmsTimed(const KernelRequest& request);

// Text that identifies a timing: the op, its operands' shapes, types and layouts, and the settings.
std::string ProblemOf(const KernelRequest& request);

// The key of a problem in the cache; it is unique for the chip and the version of the library.
std::string AlgorithmKey(const CudaDevice& device, std::string_view library, size_t version,
                         std::string_view problem);

// Called before each run of an algorithm; false: skip it. If the device is lost, the last algorithm
// that was asked for is to blame.
using MayTryAlgorithm = std::function<bool(size_t algorithm)>;

// Returns the seconds that each candidate took, infinity for one that does not run; empty if none
// could be tried.
using AlgorithmTimer = std::function<std::vector<double>(const MayTryAlgorithm& may_try)>;

// Returns the index of the candidate to use: the cached one for the key, or else the fastest, which
// is then cached. The timer is not called if there is only one candidate or a cached one. If
// nothing could be timed, returns the first with which no earlier process was lost, and caches
// nothing.
size_t ChooseAlgorithm(AlgorithmCache& cache, const std::string& key,
                       std::span<const std::string> names, const AlgorithmTimer& timer);

// Launches one algorithm on the device's compute stream, in the given buffers; false if it cannot
// run.
using AlgorithmLaunch = std::function<bool(size_t algorithm, std::span<void* const> buffers)>;

struct TimedBuffer {
  size_t bytes = 0;
  std::optional<DType> numbers;  // empty: scratch memory
  bool is_output = false;
};

// Times `count` algorithms, each by its best run, in newly allocated buffers. Inputs are drawn from
// the normal distribution: with zeros GPUs are faster, and not all algorithms by the same factor.
// Outputs and scratch memory are filled with NaN before the first run; an algorithm whose outputs
// differ from those of most others counts as not running. Empty if the device has too little
// memory.
std::vector<double> TimeAlgorithms(Device& device, std::span<const TimedBuffer> buffers,
                                   size_t count, const AlgorithmLaunch& launch,
                                   const MayTryAlgorithm& may_try);

}  // namespace caffe::cuda
