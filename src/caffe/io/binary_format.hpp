// Binaryproto: messages in protobuf's wire format (.caffemodel, .solverstate, .binaryproto).
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <limits>
#include <string>

#include "caffe/export.hpp"

namespace caffe {

class AtomicFile;

// Protobuf's size limit for a message.
inline constexpr uint64_t kMostBinaryProtoBytes = std::numeric_limits<int32_t>::max();

// Reads the complete file at `path` into `message`. Throws IoError that names the problem: missing,
// empty, larger than protobuf's 2 GiB, truncated, or another kind of file (HDF5, text).
CAFFE_EXPORT void ReadBinaryProto(const std::string& path, google::protobuf::Message* message);

// Writes `message` to a file without committing it. Throws as below.
void WriteBinaryProto(const google::protobuf::Message& message, AtomicFile* file);

// Writes `message` atomically. Throws InvalidArgument above protobuf's 2 GiB, IoError if the file
// cannot be written.
CAFFE_EXPORT void WriteBinaryProto(const std::string& path,
                                   const google::protobuf::Message& message);

}  // namespace caffe
