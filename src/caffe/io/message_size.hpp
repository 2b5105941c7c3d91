// Computes the memory of a protobuf message without allocating it.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>

#include <cstdint>

namespace caffe {

// Returns the approximate number of bytes of the parsed message. An empty layer takes two bytes in
// a file and a thousand in memory. Reads the wire format to its end, or to the first error, up to
// which the parser would have allocated.
uint64_t ParsedBytes(google::protobuf::io::CodedInputStream* input,
                     const google::protobuf::Descriptor& type);

}  // namespace caffe
