// What Hdf5Reader and the program caffe_hdf5_reader say to each other over a socket: questions
// about the file, each with a name in it, and answers. Both are of one build, so that numbers go as
// they are in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace caffe {

// Each expects the parts that are said here.
enum class Hdf5Question : uint8_t {
  kContains,      // uint8_t, 0 or 1
  kIsGroup,       // the same
  kLinksOf,       // a part for each name
  kShapeOf,       // int64_t for each axis
  kReadFloats,    // float, in any number of parts
  kReadDoubles,   // double
  kReadIntegers,  // int64_t
  kReadString,    // one part
};

// Parts, then an end or an error. Before any question, the opening of the file is answered so.
enum class Hdf5Answer : uint8_t {
  kBytes,  // uint64_t: how many bytes the parts that follow have
  kPart,
  kEnd,
  kIoError,  // its text, as that of the next
  kInvalidArgument,
};

// A question and a name, or an answer and what it holds.
struct Hdf5Message {
  uint8_t kind = 0;
  std::string body;
};

// Both return false where the other side is gone. A signal does not end them.
bool SendMessage(int socket, uint8_t kind, std::span<const std::byte> body);
bool ReceiveMessage(int socket, Hdf5Message* message);

}  // namespace caffe
