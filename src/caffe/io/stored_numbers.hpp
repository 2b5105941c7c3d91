// Numbers of blobs that stay in a .caffemodel until they are read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"
#include "caffe/tensor/origin.hpp"

namespace caffe {

class NumbersInFile;

// A net's weights as a message, without the numbers of large blobs.
struct WeightsInFile {
  NetParameter net;
  // Where the numbers of `blob`, a blob of `net`, are; null if they are in the message.
  // Throws InvalidArgument if the blob's shape needs another number of them.
  std::shared_ptr<const Origin> OriginOf(const BlobProto& blob) const;

  std::vector<std::shared_ptr<const NumbersInFile>> origins;  // in the file's order
};

// The same as ReadNetBinary(), but gradients and the numbers of blobs of 4 kB or more are skipped.
// The file stays open as long as one of the origins exists, which throw IoError if it has been
// changed since; a file that was replaced or deleted is still read. Errors are those of
// ReadNetBinary().
WeightsInFile ReadWeights(const std::string& path);

}  // namespace caffe
