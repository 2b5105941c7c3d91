#include "caffe/distributed/arrivals.hpp"

#include <glog/logging.h>
#include <poll.h>

#include <algorithm>
#include <map>
#include <utility>

namespace caffe {
namespace {

constexpr std::chrono::seconds kHandshake{10};
// If nobody has looked for that long, the process was stopped, and no end could prove anything.
constexpr std::chrono::seconds kOwnPause{5};
constexpr size_t kMostStrangers = 64;  // at a time
// Between two looks at those that are there, so that each has its turn however many come.
constexpr int kMostNew = 16;
constexpr int kNamedStrangers = 3;  // in the log and in messages

}  // namespace

Arrivals::Arrivals(Socket* port, std::string secret, int ranks)
    : port_(*port),
      secret_(std::move(secret)),
      most_(static_cast<size_t>(ranks) + kMostStrangers) {}

void Arrivals::Poll(const std::vector<int>& descriptors, const Take& take) {
  std::vector<pollfd> waiting{{port_.descriptor(), POLLIN, 0}};
  for (const int descriptor : descriptors) waiting.push_back({descriptor, POLLIN, 0});
  for (Arrival& arrival : arrivals_) {
    waiting.push_back({arrival.stream().socket().descriptor(), POLLIN, 0});
  }
  ::poll(waiting.data(), waiting.size(), 200);
  const Socket::Clock::time_point now = Socket::Clock::now();
  if (now - std::exchange(looked_, now) > kOwnPause) woke_ = now;
  Accept();
  arrivals_.remove_if([&](Arrival& arrival) { return IsDone(&arrival, take); });
}

void Arrivals::Accept() {
  for (int count = 0; count < kMostNew; ++count) {
    std::optional<Socket> socket;
    try {
      socket = port_.Accept();
    } catch (const DeviceError&) {  // no descriptors left
      if (arrivals_.empty()) throw;
      DropOne();
      continue;
    }
    if (!socket) return;
    if (arrivals_.size() >= most_) DropOne();
    arrivals_.emplace_back(std::move(*socket), secret_);
  }
}

// The oldest connection from the host that has most of them: many from one push out nobody else's.
// Where several hosts have as many, the oldest of all of theirs.
void Arrivals::DropOne() {
  std::map<std::string, int> counts;
  int most = 0;
  for (const Arrival& arrival : arrivals_) most = std::max(most, ++counts[arrival.host()]);
  arrivals_.erase(std::find_if(arrivals_.begin(), arrivals_.end(), [&](const Arrival& arrival) {
    return counts[arrival.host()] == most;
  }));
}

// Whether the connection is finished: taken, refused, closed, or too slow.
bool Arrivals::IsDone(Arrival* arrival, const Take& take) {
  std::optional<distributed::Hello> hello;
  try {
    hello = arrival->Receive();
    if (!hello) return looked_ - std::max(arrival->since(), woke_) > kHandshake;
  } catch (const InvalidArgument& error) {
    AddStranger(error.what());
    return true;
  } catch (const Error&) {  // gone, or not a rank
    return true;
  }
  try {
    take(*hello, arrival);
  } catch (const ConnectionLost&) {
  }
  return true;
}

void Arrivals::AddStranger(const std::string& what) {
  if (stranger_count_++ >= kNamedStrangers) return;
  strangers_ += StrCat("; ", what);
  LOG(WARNING) << what;
}

std::string Arrivals::strangers() const {
  const int more = stranger_count_ - kNamedStrangers;
  return more > 0 ? StrCat(strangers_, ", and ", more, " more") : strangers_;
}

}  // namespace caffe
