// MessageStream: messages of protobuf over a connection.
#pragma once

#include <google/protobuf/message_lite.h>

#include <functional>
#include <string>

#include "caffe/distributed/socket.hpp"

namespace caffe {

// Each message is preceded by its length (4 bytes, little endian). Never blocks: unsent bytes are
// buffered.
class MessageStream {
 public:
  explicit MessageStream(Socket socket) : socket_(std::move(socket)) {}

  // The other end has proved that it is a rank: its messages may be long now (16 MiB, before 4
  // KiB).
  void Trust();

  // Sends what the socket takes now; Flush() sends the rest. Throws ConnectionLost.
  void Send(const google::protobuf::MessageLite& message);
  void Flush();
  bool has_unsent() const { return !unsent_.empty(); }

  // True if a whole message has arrived. Throws ConnectionLost, and IoError for malformed bytes.
  bool Receive(google::protobuf::MessageLite* message);
  // Waits for a message until the deadline; false if none arrives. `check` is called every second
  // and may throw.
  bool Await(google::protobuf::MessageLite* message, Socket::Clock::time_point deadline,
             const std::function<void()>& check);

  Socket& socket() { return socket_; }
  const Socket& socket() const { return socket_; }
  // Gives up the connection, for other bytes. Nothing may be buffered.
  Socket Release();

 private:
  Socket socket_;
  size_t most_bytes_ = 4096;  // of a message that is received
  std::string unsent_, received_;
};

}  // namespace caffe
