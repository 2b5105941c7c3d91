// MemorySource: the storage of a SyncedMemory.
#pragma once

#include <cstddef>
#include <memory>

#include "caffe/compat/caffe/syncedmem.hpp"
#include "compat/net_blob.hpp"

namespace caffe::bvlc {

class MemorySource {
 public:
  virtual ~MemorySource() = default;

  // `writes`: true if the caller may change the memory.
  virtual void* Cpu(bool writes) = 0;
  virtual void* Gpu(bool writes) = 0;
  virtual void SetCpu(void* memory) = 0;
  virtual void SetGpu(void* memory) = 0;
  virtual SyncedMemory::SyncedHead head() const = 0;
  virtual size_t size() const = 0;
};

// The data or diff of a net's blob, as a plain array of Dtype.
template <typename Dtype>
std::unique_ptr<MemorySource> TensorOf(std::shared_ptr<NetBlob> blob, bool is_diff);

}  // namespace caffe::bvlc
