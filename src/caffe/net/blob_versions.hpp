// BlobVersions: the memory of blobs that in-place layers write again.
#pragma once

#include <set>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/net/net_blobs.hpp"
#include "caffe/plan/program.hpp"

namespace caffe {

// In Caffe each blob is one piece of memory, which in-place layers write again and again. Here each
// version has its own. In a keep-all net, these make a run of some layers look as if there were
// one: before it, what the caller sees in a blob becomes the version that the run begins with, and
// after it the caller sees the version that the run has ended with.
class BlobVersions {
 public:
  BlobVersions() = default;
  BlobVersions(const Graph& graph, const NetBlobs& blobs, const Bindings& bindings);

  // Around a run of layers first to last, counted upwards in both directions.
  void TakeFromBlobs(Direction direction, int first, int last) const;
  void ShowInBlobs(Direction direction, int first, int last) const;

 private:
  // One of the values that a blob's name has in turn.
  struct Version {
    int writer = 0;  // layers, by number
    std::set<int> readers;
    SyncedTensor* data = nullptr;
    SyncedTensor* gradient = nullptr;  // null: none
  };
  struct RewrittenBlob {
    Blob* blob = nullptr;
    std::vector<Version> versions;  // as they are written

    // The version that the layers up to this one leave; null if none of them writes the blob.
    const Version* After(int layer) const;
  };

  std::vector<RewrittenBlob> rewritten_;
};

}  // namespace caffe
