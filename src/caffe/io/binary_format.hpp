// Binaryproto: messages as protobuf's wire format (.caffemodel, .solverstate, .binaryproto).
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <limits>
#include <string>

#include "caffe/export.hpp"

namespace caffe {

class AtomicFile;

// Protobuf's limit for a message.
inline constexpr uint64_t kMostBinaryProtoBytes = std::numeric_limits<int32_t>::max();

// Reads the whole file at `path` into `message`. Throws IoError that says what is wrong: missing,
// empty, larger than protobuf's 2 GiB, truncated, or another kind of file (HDF5, text).
CAFFE_EXPORT void ReadBinaryProto(const std::string& path, google::protobuf::Message* message);

// Puts `message` into a file that is not committed yet. Throws as below.
void WriteBinaryProto(const google::protobuf::Message& message, AtomicFile* file);

// Writes `message` atomically. Throws InvalidArgument beyond protobuf's 2 GiB, IoError when the
// file cannot be written.
CAFFE_EXPORT void WriteBinaryProto(const std::string& path,
                                   const google::protobuf::Message& message);

}  // namespace caffe
