#include "caffe/distributed/rendezvous/listener.hpp"

#include <glog/logging.h>
#include <poll.h>

#include <algorithm>
#include <map>
#include <utility>

namespace caffe {
namespace {

constexpr std::chrono::seconds kHandshake{10};
// If Poll() was not called for so long, the process was stopped, and no handshake could continue.
constexpr std::chrono::seconds kOwnPause{5};
constexpr size_t kMostUnauthenticated = 64;  // at a time
// Connections accepted by one Poll(), so that many new ones do not delay the handshakes of others.
constexpr int kMostNew = 16;
constexpr int kNamedRejections = 3;  // in the log and in messages

}  // namespace

Listener::Listener(Socket* port, std::string secret, int ranks)
    : port_(*port),
      secret_(std::move(secret)),
      most_(static_cast<size_t>(ranks) + kMostUnauthenticated) {}

void Listener::Poll(const std::vector<int>& descriptors, const Take& take) {
  std::vector<pollfd> waiting{{port_.descriptor(), POLLIN, 0}};
  for (const int descriptor : descriptors) waiting.push_back({descriptor, POLLIN, 0});
  for (IncomingConnection& connection : connections_) {
    waiting.push_back({connection.stream().socket().descriptor(), POLLIN, 0});
  }
  ::poll(waiting.data(), waiting.size(), 200);
  const Socket::Clock::time_point now = Socket::Clock::now();
  if (now - std::exchange(looked_, now) > kOwnPause) woke_ = now;
  Accept();
  connections_.remove_if([&](IncomingConnection& connection) { return IsDone(&connection, take); });
}

void Listener::Accept() {
  for (int count = 0; count < kMostNew; ++count) {
    std::optional<Socket> socket;
    try {
      socket = port_.Accept();
    } catch (const DeviceError&) {  // no descriptors left
      if (connections_.empty()) throw;
      DropOne();
      continue;
    }
    if (!socket) return;
    if (connections_.size() >= most_) DropOne();
    connections_.emplace_back(std::move(*socket), secret_);
  }
}

// Drops the oldest connection of the host that has most of them, so that a host with many does not
// displace those of others. If several hosts have as many, drops the oldest of all of theirs.
void Listener::DropOne() {
  std::map<std::string, int> counts;
  int most = 0;
  for (const IncomingConnection& connection : connections_)
    most = std::max(most, ++counts[connection.host()]);
  connections_.erase(std::find_if(
      connections_.begin(), connections_.end(),
      [&](const IncomingConnection& connection) { return counts[connection.host()] == most; }));
}

// True if the connection is finished: taken, rejected, closed, or too slow.
bool Listener::IsDone(IncomingConnection* connection, const Take& take) {
  std::optional<distributed::Hello> hello;
  try {
    hello = connection->Receive();
    if (!hello) return looked_ - std::max(connection->since(), woke_) > kHandshake;
  } catch (const InvalidArgument& error) {
    CountRejected(error.what());
    return true;
  } catch (const Error&) {  // gone, or not a rank
    return true;
  }
  try {
    take(*hello, connection);
  } catch (const ConnectionLost&) {
  }
  return true;
}

void Listener::CountRejected(const std::string& what) {
  if (rejected_count_++ >= kNamedRejections) return;
  rejected_ += StrCat("; ", what);
  LOG(WARNING) << what;
}

std::string Listener::rejected() const {
  const int more = rejected_count_ - kNamedRejections;
  return more > 0 ? StrCat(rejected_, ", and ", more, " more") : rejected_;
}

}  // namespace caffe
