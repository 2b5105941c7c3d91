// Socket: one end of a TCP connection, or a port on which such connections arrive.
#pragma once

#include <chrono>
#include <optional>
#include <span>

#include "caffe/distributed/address.hpp"
#include "caffe/error.hpp"

namespace caffe {

// The other end has closed the connection or is unreachable. Callers that know the rank add it.
class ConnectionLost : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// Non-blocking, except where a deadline is given. A connection counts as lost when the other end
// acknowledges nothing for `kSilence`.
class Socket {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kSilence{15};

  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  // Listens; host "" means all addresses of this machine. Throws DeviceError if the port is in use
  // or the host is another machine.
  static Socket Listen(const Address& address);
  // Empty, with the reason, if the name cannot be resolved yet, nothing listens there yet, or
  // nothing answers. Waits at most 3 seconds for each address of the name. Throws DeviceError if
  // the process has no descriptors left.
  static std::optional<Socket> TryConnect(const Address& address, Clock::time_point deadline,
                                          std::string* why);

  // The next pending connection, if any. Throws DeviceError if the process has no descriptors left.
  std::optional<Socket> Accept();
  // Sends or receives what is possible without blocking; returns the number of bytes. Throws
  // ConnectionLost.
  size_t Send(std::span<const char> bytes);
  size_t Receive(std::span<char> bytes);

  // Nothing more will be sent: the other end's Receive() throws ConnectionLost after what was.
  void EndSending() const;

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  int port() const;               // of this end
  std::string peer_host() const;  // of the other one, as a number

 private:
  void Prepare() const;

  int descriptor_ = -1;
};

}  // namespace caffe
