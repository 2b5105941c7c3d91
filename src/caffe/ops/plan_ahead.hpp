// Kernels that take long to make, because a vendor's library compiles code, are made ahead in
// parallel threads, so that the planner's own request is answered quickly.
#pragma once

#include <map>
#include <string>
#include <typeindex>
#include <utility>

#include "caffe/ops/kernel.hpp"

namespace caffe {

// Factories that several threads may call at the same time. Their compiled code stays cached as
// long as somebody keeps their answers.
class AheadFactories {
 public:
  static AheadFactories& Get();
  // `kernel`: the candidate's name in KernelRegistry. A null factory unregisters it.
  void Register(DeviceKind device, std::type_index op, std::string kernel, KernelFactory factory) {
    auto& of_op = factories_[{device, op}];
    if (factory == nullptr) {
      of_op.erase(kernel);
    } else {
      of_op[std::move(kernel)] = std::move(factory);
    }
  }
  // Null if the candidate is not made ahead.
  const KernelFactory* Find(DeviceKind device, std::type_index op,
                            const KernelCandidate& candidate) const {
    const auto of_op = factories_.find({device, op});
    if (of_op == factories_.end()) return nullptr;
    const auto found = of_op->second.find(candidate.name);
    return found == of_op->second.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::pair<DeviceKind, std::type_index>, std::map<std::string, KernelFactory>> factories_;
};

struct AheadFactoryRegistrar {
  AheadFactoryRegistrar(DeviceKind device, std::type_index op, std::string kernel,
                        KernelFactory factory) {
    AheadFactories::Get().Register(device, op, std::move(kernel), std::move(factory));
  }
};

}  // namespace caffe
