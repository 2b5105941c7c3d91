// Kernels that take long to make, because a vendor's library compiles code, are first asked for
// ahead: by several threads, so that the answer that counts comes quickly.
#pragma once

#include <map>
#include <string>
#include <typeindex>
#include <utility>

#include "caffe/ops/kernel.hpp"

namespace caffe {

// Factories that may be called by several threads at the same time. What they compile is there as
// long as somebody keeps their answers.
class AheadFactories {
 public:
  static AheadFactories& Get();
  // `kernel`: the candidate's name in KernelRegistry. Null: it is not asked ahead any more.
  void Register(DeviceKind device, std::type_index op, std::string kernel, KernelFactory factory) {
    auto& of_op = factories_[{device, op}];
    if (factory == nullptr) {
      of_op.erase(kernel);
    } else {
      of_op[std::move(kernel)] = std::move(factory);
    }
  }
  // Null where the candidate is not asked ahead.
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
