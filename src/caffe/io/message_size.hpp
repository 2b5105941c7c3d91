// What a protobuf message takes in memory, found out without taking it.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>

#include <cstdint>

namespace caffe {

// About the bytes that the message takes once it is parsed. An empty layer is two bytes in a file
// and a thousand in memory. Reads the wire format to its end, or to where it is broken: what the
// parser would have made by then.
uint64_t ParsedBytes(google::protobuf::io::CodedInputStream* input,
                     const google::protobuf::Descriptor& type);

}  // namespace caffe
