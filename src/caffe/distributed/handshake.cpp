#include "caffe/distributed/handshake.hpp"

#include <thread>
#include <utility>

#include "caffe/core/printable.hpp"
#include "caffe/distributed/secret.hpp"

namespace caffe {
namespace {

// Fits into a message to an end that trusts nobody yet.
constexpr size_t kLongestRefusal = 2000;

// A text that one end made cannot be handed back to it as the other's.
std::string ProofOfComer(const std::string& secret, const std::string& nonce,
                         distributed::Hello hello) {
  hello.clear_proof();
  return Proof(secret, {"comes", nonce, hello.SerializeAsString()});
}

std::string ProofOfHost(const std::string& secret, const std::string& own_nonce,
                        const std::string& nonce_of_comer) {
  return Proof(secret, {"hosts", own_nonce, nonce_of_comer});
}

}  // namespace

Arrival::Arrival(Socket socket, std::string secret)
    : stream_(std::move(socket)),
      host_(stream_.socket().peer_host()),
      secret_(std::move(secret)),
      nonce_(MakeNonce()) {}

std::optional<distributed::Hello> Arrival::Receive() {
  if (!std::exchange(is_challenged_, true)) {
    distributed::Challenge challenge;
    challenge.set_nonce(nonce_);
    stream_.Send(challenge);
  }
  distributed::Hello hello;
  if (!stream_.Receive(&hello)) return std::nullopt;
  if (!AreEqual(hello.proof(), ProofOfComer(secret_, nonce_, hello))) {
    Refuse("its secret is another one");
    throw InvalidArgument(StrCat("a connection from ", host_,
                                 " has another secret; all ranks of a run need the same"));
  }
  other_nonce_ = hello.nonce();
  return hello;
}

void Arrival::Welcome() {
  distributed::Welcome welcome;
  welcome.set_proof(ProofOfHost(secret_, nonce_, other_nonce_));
  stream_.Send(welcome);
  stream_.Trust();
}

void Arrival::Refuse(const std::string& why) {
  distributed::Welcome welcome;
  welcome.set_refusal(why.substr(0, kLongestRefusal));
  stream_.Send(welcome);
}

void Greet(MessageStream* stream, const std::string& secret, distributed::Hello hello,
           Socket::Clock::time_point deadline, const std::function<void()>& check) {
  const auto await = [&](google::protobuf::MessageLite* message) {
    try {
      if (stream->Await(message, deadline, check)) return;
    } catch (const IoError& error) {
      throw DeviceError(StrCat("another program listens on that port (", error.what(),
                               "); give the run another one"));
    }
    throw DeviceError(
        "it takes the connection, but says nothing; its process is stopped, or another program "
        "listens on that port: give the run another one");
  };
  distributed::Challenge challenge;
  await(&challenge);
  hello.set_nonce(MakeNonce());
  hello.set_proof(ProofOfComer(secret, challenge.nonce(), hello));
  stream->Send(hello);
  distributed::Welcome welcome;
  await(&welcome);
  if (!welcome.refusal().empty()) {
    throw InvalidArgument(StrCat("it refuses this rank: ", Printable(welcome.refusal())));
  }
  if (!AreEqual(welcome.proof(), ProofOfHost(secret, challenge.nonce(), hello.nonce()))) {
    throw InvalidArgument("it does not know the secret of this run");
  }
  stream->Trust();
}

std::optional<MessageStream> Enter(const Address& address, const std::string& secret,
                                   const distributed::Hello& hello,
                                   Socket::Clock::time_point deadline,
                                   std::chrono::seconds patience,
                                   const std::function<void()>& check, std::string* why) {
  while (true) {
    check();
    if (std::optional<Socket> socket = Socket::TryConnect(address, deadline, why)) {
      MessageStream stream(std::move(*socket));
      try {
        Greet(&stream, secret, hello, deadline + patience, check);
        return stream;
      } catch (const ConnectionLost&) {
        *why = "connections are taken there and closed, as a proxy does with nobody behind it";
      }
    }
    if (Socket::Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace caffe
