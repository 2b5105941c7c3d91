// Challenge-response handshake at the start of each connection between two ranks. Each proves that
// it knows the secret of the run, without sending it.
#pragma once

#include <optional>
#include <string>

#include "caffe/distributed/membership.pb.h"
#include "caffe/distributed/message_stream.hpp"

namespace caffe {

// The accepting side: a new connection, not trusted yet.
class Arrival {
 public:
  Arrival(Socket socket, std::string secret);

  // The other end's hello, when it has arrived with a valid proof. Throws InvalidArgument if the
  // proof is wrong, after telling the other end, and ConnectionLost.
  std::optional<distributed::Hello> Receive();
  // Accepts or refuses the other end.
  void Welcome();
  void Refuse(const std::string& why);

  MessageStream& stream() { return stream_; }
  const std::string& host() const { return host_; }  // as a number
  Socket::Clock::time_point since() const { return since_; }

 private:
  MessageStream stream_;
  const std::string host_, secret_, nonce_;
  const Socket::Clock::time_point since_ = Socket::Clock::now();
  std::string other_nonce_;
  bool is_challenged_ = false;
};

// The connecting side. `hello` has no nonce and proof yet. Throws InvalidArgument if the other end
// refuses or does not know the secret, DeviceError if it does not answer in time, and what `check`,
// called every second, throws.
void Greet(MessageStream* stream, const std::string& secret, distributed::Hello hello,
           Socket::Clock::time_point deadline, const std::function<void()>& check);

// Connects to `address` and greets, again and again until `deadline` while nothing listens there,
// or while what listens closes the connection before it has answered, as a proxy does that has
// nobody behind it yet. An answer may take `patience` longer. Empty, with the last reason, if time
// is up. Throws as Greet() does.
std::optional<MessageStream> Enter(const Address& address, const std::string& secret,
                                   const distributed::Hello& hello,
                                   Socket::Clock::time_point deadline,
                                   std::chrono::seconds patience,
                                   const std::function<void()>& check, std::string* why);

}  // namespace caffe
