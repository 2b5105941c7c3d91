// NetBlob: what a Blob<Dtype> of these headers keeps of a net's blob.
#pragma once

#include <memory>

#include "caffe/blob.hpp"

namespace caffe::bvlc {

class NetBlob {
 public:
  explicit NetBlob(std::shared_ptr<::caffe::Blob> net_blob) : blob(std::move(net_blob)) {}

  const std::shared_ptr<::caffe::Blob> blob;
};

}  // namespace caffe::bvlc
