// Transport: point-to-point messages between ranks.
#pragma once

#include <exception>
#include <span>
#include <vector>

namespace caffe {

// One rank's end. One thread at a time, but for Abort().
class Transport {
 public:
  struct Outgoing {
    int to = 0;
    std::span<const char> bytes;
  };
  struct Incoming {
    int from = 0;
    std::span<char> bytes;
  };

  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // Sends and receives concurrently; returns when all messages are complete. Messages between two
  // ranks form a byte stream, in the order of the lists. Throws when a rank is
  // lost, and the error given to Abort().
  virtual void Exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) = 0;

  // Makes the exchange in flight, and all later ones, throw `error`. Thread-safe; the first call
  // wins.
  virtual void Abort(std::exception_ptr error) = 0;
  // The error given to Abort(), if it was called. Thread-safe.
  virtual void ThrowIfAborted() = 0;
};

}  // namespace caffe
