// Challenge-response handshake at the start of each connection between two ranks. Both ends prove
// that they know the secret of the run, without sending it.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "caffe/distributed/message_stream.hpp"
#include "caffe/distributed/rendezvous.pb.h"

namespace caffe {

// The accepting end of a new connection that is not authenticated yet.
class IncomingConnection {
 public:
  IncomingConnection(Socket socket, std::string secret);

  // The other end's hello, once it has arrived with a valid proof. Throws InvalidArgument if the
  // proof is wrong, after telling the other end, and ConnectionLost.
  std::optional<distributed::Hello> Receive();
  // Accepts or rejects the other end.
  void Accept();
  void Reject(const std::string& why);

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

// The connecting end. `hello` has no nonce and no proof yet. The other end has until
// `challenge_deadline` for its challenge, and until `deadline` for its verdict. Throws
// InvalidArgument if the other end rejects this rank or does not know the secret, DeviceError if it
// does not answer in time, and whatever `check`, which is called every second, throws.
void Authenticate(MessageStream* stream, const std::string& secret, distributed::Hello hello,
                  Socket::Clock::time_point challenge_deadline, Socket::Clock::time_point deadline,
                  const std::function<void()>& check);

// Connects to the first of a rank's `addresses` that answers, and authenticates. Tries all of them
// again until `deadline` while nothing listens there, or while the connection is closed before an
// answer arrives, as by a proxy whose server is not up yet. An answer may take `patience` longer.
// Returns nothing, and the last reason, if time is up. Throws as Authenticate() does; but if there
// are several addresses, one where another program answers, or nobody within 5 seconds, is tried
// again like one where nothing listens.
std::optional<MessageStream> ConnectToRank(std::span<const Address> addresses,
                                           const std::string& secret,
                                           const distributed::Hello& hello,
                                           Socket::Clock::time_point deadline,
                                           std::chrono::seconds patience,
                                           const std::function<void()>& check, std::string* why);

}  // namespace caffe
