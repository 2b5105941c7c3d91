// NetBlob: the part of a net's blob that Blob<Dtype> of these headers stores.
#pragma once

#include <cstdint>
#include <memory>

#include "caffe/blob.hpp"

namespace caffe::bvlc {

class NetBlob {
 public:
  explicit NetBlob(std::shared_ptr<::caffe::Blob> net_blob, bool is_input = false)
      : blob(std::move(net_blob)), is_input(is_input) {}

  const std::shared_ptr<::caffe::Blob> blob;
  const bool is_input;  // an input of its net

  // Implements set_cpu_data() of an input: the net copies the caller's memory before each forward
  // pass.
  void Borrow(void* memory) {
    borrowed_ = memory;
    borrowed_count_ = blob->count();
  }
  // Null if there is none, or if the blob has outgrown it.
  void* borrowed() {
    if (blob->count() > borrowed_count_) borrowed_ = nullptr;
    return borrowed_;
  }

 private:
  void* borrowed_ = nullptr;
  int64_t borrowed_count_ = 0;
};

}  // namespace caffe::bvlc
