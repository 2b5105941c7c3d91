// A vendor's kernel serves a convolution of few bits only where it was seen to be right: libraries
// have had kernels for 16 and 8 bits that give nonsense for single geometries, or write beyond
// their operands.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

// What is wrong with the results of `kernel` for a request of Conv, ConvGradData or
// ConvGradWeights; nothing if it is right. Runs it once, on whole numbers between walls, and
// compares some results, those at the edges first, with the definition. Needs the operands' memory
// again; throws DeviceError where there is none.
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
// these are, with version and instruction set; findings are kept for it, the request and the number
// of threads. Large batches are checked with fewer items.
KernelOrRefusal MakeIfRight(const std::string& library, const KernelRequest& request,
                            const ConvFactory& make);

}  // namespace caffe::cpu
