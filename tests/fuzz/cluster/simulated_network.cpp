#include "tests/fuzz/cluster/simulated_network.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "caffe/error.hpp"
#include "tests/fuzz/cluster/simulation.hpp"

namespace caffe::fuzz {
namespace {

// The maximum extra time, beyond its options, until a system notices that nobody answers: its
// timers double.
constexpr int64_t kLatestNotice = 3 * kSecond;

std::pair<int, int> PairOf(int host, int other) {
  return std::minmax(host, other);
}

}  // namespace

std::string SimulatedNetwork::AddressOf(int host) {
  return StrCat("10.0.0.", host + 1);
}

int SimulatedNetwork::Add(std::shared_ptr<End> end) {
  end->host = Simulation::Self().process;
  ends_.emplace(next_, std::move(end));
  return next_++;
}

int SimulatedNetwork::Open() {
  return Add(std::make_shared<End>());
}

int SimulatedNetwork::OpenEvent() {
  auto end = std::make_shared<End>();
  end->is_event = true;
  return Add(std::move(end));
}

int SimulatedNetwork::Bind(int descriptor, uint16_t port) {
  End& own = Find(descriptor);
  for (const auto& [number, end] : ends_) {
    if (port != 0 && end->listens && end->host == own.host && end->port == port) return -EADDRINUSE;
  }
  own.port = port != 0 ? port : next_port_++;
  return 0;
}

int SimulatedNetwork::Listen(int descriptor) {
  Find(descriptor).listens = true;
  return 0;
}

int64_t SimulatedNetwork::Delay() {
  const auto span = static_cast<uint64_t>(options_.most_delay - options_.least_delay + 1);
  return options_.least_delay + static_cast<int64_t>(simulation_.random().Next() % span);
}

bool SimulatedNetwork::IsCut(int host, int other) const {
  return cuts_.count(PairOf(host, other)) > 0;
}

int SimulatedNetwork::Connect(int descriptor, int host, uint16_t port) {
  const std::shared_ptr<End> end = ends_.at(descriptor);
  end->port = next_port_++;
  end->other_host = host;
  end->other_port = port;
  end->connects = true;
  simulation_.At(simulation_.now() + Delay(), [=, this] { Arrive(end, port); });
  return -EINPROGRESS;
}

// Called at the host that a connection goes to.
void SimulatedNetwork::Arrive(const std::shared_ptr<End>& from, uint16_t port) {
  if (!from->is_open) return;
  if (IsCut(from->host, from->other_host)) {  // the packet is sent again
    simulation_.At(simulation_.now() + kSecond, [=, this] { Arrive(from, port); });
    return;
  }
  const auto listener = std::ranges::find_if(ends_, [&](const auto& one) {
    return one.second->listens && one.second->host == from->other_host && one.second->port == port;
  });
  const int64_t answered = simulation_.now() + Delay();
  if (listener == ends_.end()) {
    simulation_.At(answered, [from] {
      from->connects = false;
      from->error = ECONNREFUSED;
    });
    return;
  }
  auto end = std::make_shared<End>();
  end->host = from->other_host;
  end->port = port;
  end->other = from;
  end->other_host = from->host;
  end->other_port = from->port;
  end->is_connected = true;
  from->other = end;
  listener->second->arrivals.push_back(std::move(end));
  simulation_.At(answered, [from] {
    from->connects = false;
    from->is_connected = true;
  });
}

int SimulatedNetwork::Accept(int descriptor) {
  auto& arrivals = Find(descriptor).arrivals;
  if (arrivals.empty()) return -EAGAIN;
  std::shared_ptr<End> end = std::move(arrivals.front());
  arrivals.pop_front();
  return Add(std::move(end));
}

// Packets in flight arrive in the order in which they were sent.
void SimulatedNetwork::Push(End* to, Packet::Kind kind, std::string bytes) {
  if (kind == Packet::kReset && options_.resets_lose_packets && simulation_.random().Chance(0.5)) {
    to->in_flight.clear();
  }
  to->last_arrival = std::max(to->last_arrival, simulation_.now() + Delay());
  to->in_flight.push_back({kind, to->last_arrival, std::move(bytes)});
  simulation_.At(to->last_arrival, nullptr);
}

// Receives the packets that have arrived.
void SimulatedNetwork::Advance(End* end) {
  while (!end->in_flight.empty() && end->in_flight.front().arrives <= simulation_.now() &&
         !IsCut(end->host, end->other_host)) {
    const Packet packet = std::move(end->in_flight.front());
    end->in_flight.pop_front();
    if (packet.kind == Packet::kData) end->received += packet.bytes;
    if (packet.kind == Packet::kEnd) end->has_ended = true;
    if (packet.kind == Packet::kReset) end->error = ECONNRESET;
  }
  CheckTimeout(end);
}

void SimulatedNetwork::CheckTimeout(End* end) {
  const auto cut = cuts_.find(PairOf(end->host, end->other_host));
  if (cut == cuts_.end() || !end->is_connected || end->error != 0 || end->user_timeout == 0) return;
  int64_t silent_since = end->unanswered_since;
  if (end->keeps_alive && silent_since < 0) silent_since = cut->second;
  if (silent_since < 0 || simulation_.now() < silent_since + end->user_timeout + end->patience)
    return;
  end->error = ETIMEDOUT;
}

void SimulatedNetwork::WakeAtTimeout(const End& end) {
  simulation_.At(simulation_.now() + end.user_timeout + end.patience, nullptr);
}

int64_t SimulatedNetwork::Send(int descriptor, const char* bytes, size_t count) {
  End& own = Find(descriptor);
  Advance(&own);
  if (own.error != 0) return -std::exchange(own.error, EPIPE);
  if (!own.is_connected) return -ENOTCONN;
  if (own.sends_no_more) return -EPIPE;
  const std::shared_ptr<End> other = own.other.lock();
  if (other == nullptr || !other->is_open) {
    Push(&own, Packet::kReset, "");  // a host's answer about an unknown connection
    return static_cast<int64_t>(count);
  }
  size_t waiting = other->received.size();
  for (const Packet& packet : other->in_flight) waiting += packet.bytes.size();
  const auto buffer = static_cast<size_t>(options_.buffer);
  if (waiting >= buffer) return -EAGAIN;
  const auto most = static_cast<size_t>(simulation_.random().Between(1, options_.most_bytes));
  const size_t sent = std::min({count, buffer - waiting, most});
  Push(other.get(), Packet::kData, std::string(bytes, sent));
  if (IsCut(own.host, own.other_host) && own.unanswered_since < 0) {
    own.unanswered_since = simulation_.now();
    WakeAtTimeout(own);
  }
  return static_cast<int64_t>(sent);
}

int64_t SimulatedNetwork::Receive(int descriptor, char* bytes, size_t count) {
  End& own = Find(descriptor);
  Advance(&own);
  if (own.received.empty()) {
    if (own.error != 0) return -std::exchange(own.error, EPIPE);
    if (own.has_ended) return 0;
    return own.is_connected ? -EAGAIN : -ENOTCONN;
  }
  const auto most = static_cast<size_t>(simulation_.random().Between(1, options_.most_bytes));
  const size_t received = std::min({count, own.received.size(), most});
  own.received.copy(bytes, received);
  own.received.erase(0, received);
  return static_cast<int64_t>(received);
}

int64_t SimulatedNetwork::WriteEvent(int descriptor, uint64_t number) {
  Find(descriptor).number += number;
  return sizeof number;
}

int64_t SimulatedNetwork::ReadEvent(int descriptor, uint64_t* number) {
  End& own = Find(descriptor);
  if (own.number == 0) return -EAGAIN;
  *number = std::exchange(own.number, 0);
  return sizeof *number;
}

int SimulatedNetwork::EndSending(int descriptor) {
  End& own = Find(descriptor);
  const std::shared_ptr<End> other = own.other.lock();
  if (!own.is_connected) return -ENOTCONN;
  if (std::exchange(own.sends_no_more, true) || other == nullptr || !other->is_open) return 0;
  Push(other.get(), Packet::kEnd, "");
  return 0;
}

int SimulatedNetwork::Close(int descriptor) {
  const auto own = ends_.find(descriptor);
  if (own == ends_.end()) return -EBADF;
  Shut(own->second.get());
  ends_.erase(own);
  return 0;
}

// If an end is closed with unread bytes, it resets the connection.
void SimulatedNetwork::Shut(End* end) {
  end->is_open = false;
  for (const auto& arrival : end->arrivals) Shut(arrival.get());
  Advance(end);
  const std::shared_ptr<End> other = end->other.lock();
  if (other == nullptr || !other->is_open) return;
  const bool resets = !end->received.empty();
  if (resets || !end->sends_no_more) {
    Push(other.get(), resets ? Packet::kReset : Packet::kEnd, "");
  }
}

void SimulatedNetwork::KeepAlive(int descriptor) {
  Find(descriptor).keeps_alive = true;
}

void SimulatedNetwork::SetUserTimeout(int descriptor, int64_t timeout) {
  End& own = Find(descriptor);
  own.user_timeout = timeout;
  own.patience =
      static_cast<int64_t>(simulation_.random().Next() % static_cast<uint64_t>(kLatestNotice));
}

int SimulatedNetwork::TakeError(int descriptor) {
  return std::exchange(Find(descriptor).error, 0);
}

std::pair<int, uint16_t> SimulatedNetwork::NameOf(int descriptor) const {
  return {Find(descriptor).host, Find(descriptor).port};
}

std::pair<int, uint16_t> SimulatedNetwork::PeerOf(int descriptor) const {
  return {Find(descriptor).other_host, Find(descriptor).other_port};
}

bool SimulatedNetwork::IsReadable(int descriptor) {
  End& own = Find(descriptor);
  if (own.is_event) return own.number > 0;
  if (own.listens) return !own.arrivals.empty();
  Advance(&own);
  return !own.received.empty() || own.has_ended || own.error != 0;
}

bool SimulatedNetwork::IsWritable(int descriptor) {
  End& own = Find(descriptor);
  if (own.is_event || own.listens || own.connects) return own.is_event;
  Advance(&own);
  if (own.error != 0 || !own.is_connected) return true;
  const std::shared_ptr<End> other = own.other.lock();
  if (other == nullptr) return true;
  size_t waiting = other->received.size();
  for (const Packet& packet : other->in_flight) waiting += packet.bytes.size();
  return waiting < static_cast<size_t>(options_.buffer);
}

void SimulatedNetwork::Cut(int host, int other) {
  cuts_.emplace(PairOf(host, other), simulation_.now());
  for (const auto& [descriptor, end] : ends_) {
    if (!end->is_event && PairOf(end->host, end->other_host) == PairOf(host, other)) {
      WakeAtTimeout(*end);
    }
  }
}

void SimulatedNetwork::Mend(int host, int other) {
  cuts_.erase(PairOf(host, other));
  for (const auto& [descriptor, end] : ends_) end->unanswered_since = -1;
}

int SimulatedNetwork::ResetOne(int host) {
  std::vector<End*> connections;
  for (const auto& [descriptor, end] : ends_) {
    if (end->host == host && end->is_connected && !end->other.expired())
      connections.push_back(end.get());
  }
  if (connections.empty()) return -1;
  End& end = *simulation_.random().Pick(connections);
  end.error = ECONNRESET;
  end.other.lock()->error = ECONNRESET;
  return end.other_host;
}

void SimulatedNetwork::Exit(int process) {
  for (auto one = ends_.begin(); one != ends_.end();) {
    if (one->second->host == process) {
      Shut(one->second.get());
      one = ends_.erase(one);
    } else {
      ++one;
    }
  }
}

}  // namespace caffe::fuzz
