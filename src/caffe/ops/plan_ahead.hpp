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
  static AheadFactories& Get() {
    static AheadFactories factories;
    return factories;
  }
  // `kernel`: the candidate's name in KernelRegistry.
  void Register(DeviceKind device, std::type_index op, std::string kernel, KernelFactory factory) {
    factories_[{device, op}] = {std::move(kernel), std::move(factory)};
  }
  // Null where the candidate is not asked ahead.
  const KernelFactory* Find(DeviceKind device, std::type_index op,
                            const KernelCandidate& candidate) const {
    const auto found = factories_.find({device, op});
    const bool is_asked = found != factories_.end() && found->second.first == candidate.name;
    return is_asked ? &found->second.second : nullptr;
  }

 private:
  std::map<std::pair<DeviceKind, std::type_index>, std::pair<std::string, KernelFactory>>
      factories_;
};

struct AheadFactoryRegistrar {
  AheadFactoryRegistrar(DeviceKind device, std::type_index op, std::string kernel,
                        KernelFactory factory) {
    AheadFactories::Get().Register(device, op, std::move(kernel), std::move(factory));
  }
};

}  // namespace caffe
