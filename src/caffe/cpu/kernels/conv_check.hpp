// Checks a vendor's kernel for a 16-bit or 8-bit convolution before it is used: libraries have had
// such kernels that compute garbage for single geometries, or write beyond their operands. For
// float, the sweep of geometries (tests/conformance/conv_sweep_test.cpp) has found a single defect,
// which is avoided where the kernel is made; float kernels are therefore not checked.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "caffe/cpu/onednn.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

// Returns what is wrong with the results of `kernel` for a request of Conv, ConvGradData or
// ConvGradWeights; nothing if it is right. Runs it on integers between guard zones and compares
// some results, edges first, with the definition. Weight gradients are also checked with
// accumulation. Allocates the operands once more; throws DeviceError if out of memory.
std::optional<std::string> FaultOfConv(const KernelRequest& request, const Kernel& kernel);

// Persistent storage of findings. Without it, as in the runtime library, each process repeats the
// checks.
struct ConvFindings {
  // The finding of an earlier process: a fault, or "" for none.
  virtual std::optional<std::string> Find(const std::string& key) = 0;
  // Returns false if earlier processes crashed or hung in this check.
  virtual bool Begin(const std::string& key) = 0;
  virtual void Store(const std::string& key, const std::string& fault) = 0;
  virtual void GiveUp(const std::string& key, const std::string& why) = 0;

 protected:
  ~ConvFindings() = default;
};
// Null if there is no storage. Set it before main() begins.
ConvFindings*& KeptConvFindings();

using ConvFactory = std::function<KernelOrRefusal(const KernelRequest&)>;
// Returns the kernel that `make` makes for the request, unless a fault is found. `library` names
// the kernels' library, version and instruction set. Findings are stored by library, request,
// processor (because its caches determine block sizes) and number of threads. A large batch is
// computed in parts, and one part is checked.
KernelOrRefusal MakeIfRight(const std::string& library, const KernelRequest& request,
                            const ConvFactory& make);

enum class OneDnnPart { kConvolutions, kProducts };
// Makes a oneDNN kernel; other types than float only if the kernel is right.
template <typename T, KernelOrRefusal (*make)(const T&, const KernelRequest&),
          OneDnnPart part = OneDnnPart::kConvolutions>
KernelOrRefusal MakeUnlessWrong(const T& op, const KernelRequest& request) {
  if (request.inputs[0].dtype == DType::kFloat) return make(op, request);
  return MakeIfRight(OneDnnName() + (part == OneDnnPart::kProducts ? " products" : ""), request,
                     [&](const KernelRequest& one) { return make(op, one); });
}

}  // namespace caffe::cpu
