// BlobVersions: emulates the shared memory of blobs that in-place layers overwrite.
#pragma once

#include <set>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/net/net_blobs.hpp"
#include "caffe/plan/program.hpp"

namespace caffe {

// In Caffe each blob is one piece of memory, which in-place layers overwrite. Here each version has
// its own memory. In a keep-all net, this class makes a run of some layers behave as in Caffe:
// before the run, the blob's visible contents become the version that the run begins with; after
// the run, the blob shows the version that the run ended with.
class BlobVersions {
 public:
  BlobVersions() = default;
  BlobVersions(const Graph& graph, const NetBlobs& blobs, const Bindings& bindings);

  // Call these before and after a run of layers first to last, counted upwards in both directions.
  void TakeFromBlobs(Direction direction, int first, int last) const;
  void ShowInBlobs(Direction direction, int first, int last) const;

 private:
  // One of the successive values of a blob.
  struct Version {
    int writer = 0;  // layers, by index
    std::set<int> readers;
    SyncedTensor* data = nullptr;
    SyncedTensor* gradient = nullptr;  // null if there is none
  };
  struct RewrittenBlob {
    Blob* blob = nullptr;
    std::vector<Version> versions;  // in the order in which they are written

    // The version after the layers up to this one; null if none of them writes the blob.
    const Version* After(int layer) const;
  };

  std::vector<RewrittenBlob> rewritten_;
};

}  // namespace caffe
