// The protocol between Hdf5Reader and the program caffe_hdf5_reader over a socket: questions about
// the file, each with a name, and answers. Both come from one build, so numbers are sent in native
// form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace caffe {

// The comments give the parts of each answer.
enum class Hdf5Question : uint8_t {
  kContains,      // uint8_t, 0 or 1
  kIsGroup,       // the same
  kLinksOf,       // a part per name
  kShapeOf,       // one int64_t per axis
  kReadFloats,    // float, in any number of parts
  kReadDoubles,   // double
  kReadIntegers,  // int64_t
  kReadString,    // one part
};

// Parts, then an end or an error. This also answers the opening of the file, before any question.
enum class Hdf5Answer : uint8_t {
  kBytes,  // uint64_t: the number of bytes in the following parts
  kPart,
  kEnd,
  kIoError,  // the error text, as for the next one
  kInvalidArgument,
};

// A question and a name, or an answer and its contents.
struct Hdf5Message {
  uint8_t kind = 0;
  std::string body;
};

// Both return false if the other side is gone. They continue after signals.
bool SendMessage(int socket, uint8_t kind, std::span<const std::byte> body);
bool ReceiveMessage(int socket, Hdf5Message* message);

}  // namespace caffe
