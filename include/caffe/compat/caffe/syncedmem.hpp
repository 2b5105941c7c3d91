// SyncedMemory: bytes visible to the host and the GPU, copied between them on demand.
#pragma once

#include <cstddef>
#include <memory>

#include "common.hpp"

CAFFE_BVLC_BEGIN
// The storage of a SyncedMemory: its own bytes, or a tensor of a net.
class MemorySource;

// Its own bytes are zero when they are first accessed. A pointer stays valid as long as the object,
// but memory of a net moves when the net changes its shape.
class SyncedMemory {
 public:
  SyncedMemory();
  explicit SyncedMemory(size_t size);
  // For the library.
  explicit SyncedMemory(std::unique_ptr<MemorySource> source);
  ~SyncedMemory();

  const void* cpu_data();
  // Uses the caller's memory, which has to outlive its use. A net copies from an input's memory at
  // the start of each forward pass.
  void set_cpu_data(void* data);
  // The GPU methods throw caffe::Error in a build without GPUs.
  const void* gpu_data();
  void set_gpu_data(void* data);
  void* mutable_cpu_data();
  void* mutable_gpu_data();

  enum SyncedHead { UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED };
  SyncedHead head() const;
  size_t size() const;

#ifndef CPU_ONLY
  // Copies to the GPU and waits for the copy: there is only one stream.
  void async_gpu_push(const cudaStream_t&) {
    gpu_data();
  }
#endif

 private:
  std::unique_ptr<MemorySource> source_;

  DISABLE_COPY_AND_ASSIGN(SyncedMemory);
};

CAFFE_BVLC_END
