// A vendor's kernel serves a convolution of few bits only where it was seen to be right: libraries
// have had kernels for 16 and 8 bits that give nonsense for single geometries, or write beyond
// their operands. Of float, the sweep of geometries (tests/conformance/conv_sweep_test.cpp) has
// found one defect, which is kept out where the kernel is made; those are taken unasked.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "caffe/cpu/onednn.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

// What is wrong with the results of `kernel` for a request of Conv, ConvGradData or
// ConvGradWeights; nothing if it is right. Runs it on whole numbers between walls, and compares
// some results, those at the edges first, with the definition; gradients of weights once more,
// added to the first. Needs the operands' memory again; throws DeviceError where there is none.
std::optional<std::string> FaultOfConv(const KernelRequest& request, const Kernel& kernel);

// Where findings outlive the process. Without it, as in the runtime library, each process checks
// for itself.
struct ConvFindings {
  // What an earlier process found: a fault, "" for none.
  virtual std::optional<std::string> Find(const std::string& key) = 0;
  // False where earlier processes did not come back from this check.
  virtual bool Begin(const std::string& key) = 0;
  virtual void Store(const std::string& key, const std::string& fault) = 0;
  virtual void GiveUp(const std::string& key, const std::string& why) = 0;

 protected:
  ~ConvFindings() = default;
};
// Null: none. For whoever has one, before main() begins.
ConvFindings*& KeptConvFindings();

using ConvFactory = std::function<KernelOrRefusal(const KernelRequest&)>;
// What `make` makes for the request, unless it is found at fault. `library` names whose kernels
// these are, with version and instruction set; findings are kept for it, the request, the
// processor, whose caches decide on blocks, and the number of threads. A large batch is
// computed in parts, of which one is checked.
KernelOrRefusal MakeIfRight(const std::string& library, const KernelRequest& request,
                            const ConvFactory& make);

enum class OneDnnPart { kConvolutions, kProducts };
// A factory of oneDNN's kernels, which serve if they are right or for float.
template <typename T, KernelOrRefusal (*make)(const T&, const KernelRequest&),
          OneDnnPart part = OneDnnPart::kConvolutions>
KernelOrRefusal MakeUnlessWrong(const T& op, const KernelRequest& request) {
  if (request.inputs[0].dtype == DType::kFloat) return make(op, request);
  return MakeIfRight(OneDnnName() + (part == OneDnnPart::kProducts ? " products" : ""), request,
                     [&](const KernelRequest& one) { return make(op, one); });
}

}  // namespace caffe::cpu
