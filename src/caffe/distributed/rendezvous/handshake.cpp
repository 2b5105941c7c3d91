#include "caffe/distributed/rendezvous/handshake.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "caffe/core/printable.hpp"
#include "caffe/distributed/rendezvous/proof.hpp"

namespace caffe {
namespace {

// The message must be short enough for an end that has not authenticated this one yet.
constexpr size_t kLongestRefusal = 2000;
// How long one of several addresses has to answer. Private addresses, such as those of containers,
// may belong to another machine here, where another program listens.
constexpr std::chrono::seconds kAnswer{5};

// The other end has not proved that it knows the secret, so it may belong to another run.
class UnknownEnd : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

Socket::Clock::time_point AnswerDeadline(Socket::Clock::time_point deadline) {
  return std::min(deadline, Socket::Clock::now() + kAnswer);
}

// The two ends' proofs start with different words, so that neither can be sent back as the other.
std::string ProofOfClient(const std::string& secret, const std::string& nonce,
                          distributed::Hello hello) {
  hello.clear_proof();
  return Proof(secret, {"comes", nonce, hello.SerializeAsString()});
}

std::string ProofOfServer(const std::string& secret, const std::string& own_nonce,
                          const std::string& nonce_of_client) {
  return Proof(secret, {"hosts", own_nonce, nonce_of_client});
}

}  // namespace

IncomingConnection::IncomingConnection(Socket socket, std::string secret)
    : stream_(std::move(socket)),
      host_(stream_.socket().peer_host()),
      secret_(std::move(secret)),
      nonce_(MakeNonce()) {}

std::optional<distributed::Hello> IncomingConnection::Receive() {
  if (!std::exchange(is_challenged_, true)) {
    distributed::Challenge challenge;
    challenge.set_nonce(nonce_);
    stream_.Send(challenge);
  }
  distributed::Hello hello;
  if (!stream_.Receive(&hello)) return std::nullopt;
  if (!AreEqual(hello.proof(), ProofOfClient(secret_, nonce_, hello))) {
    Reject("its secret is another one");
    throw InvalidArgument(StrCat("a connection from ", host_,
                                 " has another secret; all ranks of a run need the same"));
  }
  other_nonce_ = hello.nonce();
  return hello;
}

void IncomingConnection::Accept() {
  distributed::Verdict verdict;
  verdict.set_proof(ProofOfServer(secret_, nonce_, other_nonce_));
  stream_.Send(verdict);
  stream_.Trust();
}

void IncomingConnection::Reject(const std::string& why) {
  distributed::Verdict verdict;
  if (!other_nonce_.empty()) verdict.set_proof(ProofOfServer(secret_, nonce_, other_nonce_));
  verdict.set_refusal(why.substr(0, kLongestRefusal));
  stream_.Send(verdict);
}

void Authenticate(MessageStream* stream, const std::string& secret, distributed::Hello hello,
                  Socket::Clock::time_point challenge_deadline, Socket::Clock::time_point deadline,
                  const std::function<void()>& check) {
  const auto await = [&](google::protobuf::MessageLite* message, Socket::Clock::time_point until) {
    try {
      if (stream->Await(message, until, check)) return;
    } catch (const IoError& error) {
      throw DeviceError(StrCat("another program listens on that port (", error.what(),
                               "); give the run another one"));
    }
    throw DeviceError(
        "it accepts the connection, but sends nothing; its process is stopped, or another program "
        "listens on that port: give the run another one");
  };
  distributed::Challenge challenge;
  await(&challenge, challenge_deadline);
  hello.set_nonce(MakeNonce());
  hello.set_proof(ProofOfClient(secret, challenge.nonce(), hello));
  stream->Send(hello);
  distributed::Verdict verdict;
  await(&verdict, deadline);
  const bool knows_secret =
      AreEqual(verdict.proof(), ProofOfServer(secret, challenge.nonce(), hello.nonce()));
  if (!verdict.refusal().empty()) {
    const std::string why = StrCat("it refuses this rank: ", Printable(verdict.refusal()));
    if (knows_secret) throw InvalidArgument(why);
    throw UnknownEnd(why);
  }
  if (!knows_secret) throw UnknownEnd("it does not know the secret of this run");
  stream->Trust();
}

std::optional<MessageStream> ConnectToRank(std::span<const Address> addresses,
                                           const std::string& secret,
                                           const distributed::Hello& hello,
                                           Socket::Clock::time_point deadline,
                                           std::chrono::seconds patience,
                                           const std::function<void()>& check, std::string* why) {
  while (true) {
    for (const Address& address : addresses) {
      check();
      std::optional<Socket> socket = Socket::TryConnect(address, deadline, why);
      if (!socket) continue;
      MessageStream stream(std::move(*socket));
      try {
        const Socket::Clock::time_point end = deadline + patience;
        Authenticate(&stream, secret, hello, addresses.size() == 1 ? end : AnswerDeadline(end), end,
                     check);
        return stream;
      } catch (const ConnectionLost&) {
        *why = "connections are accepted there and closed, as by a proxy without a server";
      } catch (const UnknownEnd& error) {
        if (addresses.size() == 1) throw;
        *why = error.what();
      } catch (const DeviceError& error) {  // no answer
        if (addresses.size() == 1) throw;
        *why = error.what();
      }
    }
    if (Socket::Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace caffe
