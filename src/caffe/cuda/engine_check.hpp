// Engines that fuse several steps are new with each version of a vendor's library, and few people
// have run them. So each is compared with the separate steps before it is used.
#pragma once

#include <functional>
#include <string>

#include "caffe/device/algorithm_cache.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

struct EngineCheck {
  AlgorithmCache& cache;
  std::string key;  // starts with the chip; names library version, engine and problem
  // True to reject also a fused kernel that is slower than the plain one.
  bool is_timed = true;
  // Inputs that are variances and must not be filled with negative noise.
  OperandSet variances = {};
};

// Returns the fused kernel if, on noise, it computes the same outputs as the plain one up to
// rounding; otherwise the plain one, with a warning. Outputs that are updated in place
// (Op::updates()) are not compared. Both run in separate memory of the requested shapes; if there
// is not enough, the plain one is returned. The cache keeps the verdict for later processes, and
// also rejects a fused kernel with which a process was lost. If the plain one refuses, there is
// nothing to compare with.
KernelOrRefusal CheckedKernel(const KernelRequest& request, const EngineCheck& check, Kernel fused,
                              const std::function<KernelOrRefusal()>& make_plain);

// Returns the fused kernel for a thread that plans ahead and runs nothing. The plain kernel is also
// created, and kept alive, if CheckedKernel() will need it.
Kernel AheadOfCheck(const EngineCheck& check, Kernel fused,
                    const std::function<KernelOrRefusal()>& make_plain);

// Returns `kernel`, which now also keeps alive what `other` holds: plans that were built ahead
// exist as long as the result.
Kernel Holding(Kernel kernel, const Kernel& other);

}  // namespace caffe::cuda
