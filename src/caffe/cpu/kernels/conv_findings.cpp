// Stores findings of convolution checks together with the cached fastest algorithms of GPUs.
#include <glog/logging.h>

#include "caffe/cpu/kernels/conv_check.hpp"
#include "caffe/device/algorithm_cache.hpp"

namespace caffe::cpu {
namespace {

constexpr const char* kAgrees = "agrees";
constexpr const char* kCheck = "check";  // stored as the algorithm that is tried

class FindingsOfUser final : public ConvFindings {
 public:
  FindingsOfUser() { KeptConvFindings() = this; }

  std::optional<std::string> Find(const std::string& key) override {
    const auto found = Cache().Find(key);
    return found == kAgrees ? std::optional<std::string>("") : found;
  }
  bool Begin(const std::string& key) override { return Cache().Try(key, kCheck); }
  void Store(const std::string& key, const std::string& fault) override {
    Cache().Store(key, fault.empty() ? kAgrees : fault);
    if (fault.empty()) return;
    LOG(WARNING) << "A kernel is not used, because " << fault << ": " << key << "; "
                 << Cache().keeper() << " remembers it";
  }
  void GiveUp(const std::string& key, const std::string& why) override {
    Cache().GiveUp(key);
    LOG(WARNING) << "A kernel is not used, because it could not be tried (" << why << "): " << key;
  }

 private:
  static AlgorithmCache& Cache() {
    static AlgorithmCache cache(AlgorithmCache::FileOfUser(".cpu"));
    return cache;
  }
};

FindingsOfUser findings;

}  // namespace
}  // namespace caffe::cpu
