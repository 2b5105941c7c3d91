// Engines that do several steps at once are new with each version of a vendor's library, and few
// people have run them. So each is compared with the steps themselves before it is used.
#pragma once

#include <functional>
#include <string>

#include "caffe/device/algorithm_cache.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

struct EngineCheck {
  AlgorithmCache& cache;
  std::string key;  // begins with the chip; names the library's version, the engine and the problem
  // Whether a fused kernel is left out, too, that takes longer than the plain one.
  bool is_timed = true;
  // Inputs that are variances, which noise with negative numbers is not.
  OperandSet variances = {};
};

// The fused kernel, if it makes of noise the outputs that the plain one makes, up to rounding;
// else the plain one, with a warning. Outputs that are updated in place (Op::updates()) are left
// out. Both run in memory of their own, as the request has it; where there is none, the plain one
// serves. The cache keeps the verdict, so that it holds for later processes. It also keeps out a
// fused kernel with which a process was lost. Where the plain one refuses, there is nothing to
// compare with.
KernelOrRefusal CheckedKernel(const KernelRequest& request, const EngineCheck& check, Kernel fused,
                              const std::function<KernelOrRefusal()>& make_plain);

// The fused kernel, as a thread asks for it that plans ahead and runs nothing. The plain one is
// made, too, where CheckedKernel() will need it, and held.
Kernel AheadOfCheck(const EngineCheck& check, Kernel fused,
                    const std::function<KernelOrRefusal()>& make_plain);

// `kernel`, which also holds what `other` does: plans that were built ahead are there for as long
// as the answer is.
Kernel Holding(Kernel kernel, const Kernel& other);

}  // namespace caffe::cuda
