// Ranks on the loopback address, for tests.
#pragma once

#include <mutex>
#include <random>
#include <set>

#include "caffe/distributed/rendezvous/rendezvous.hpp"
#include "caffe/distributed/socket.hpp"
#include "caffe/error.hpp"

namespace caffe::testing {

// A port that was free a moment ago, outside the range for outgoing connections, and never returned
// twice.
inline int FreePort() {
  static std::mutex mutex;
  static std::random_device random;
  static std::set<int> given;
  const std::lock_guard lock(mutex);
  while (true) {
    const int port = std::uniform_int_distribution(10000, 19999)(random);
    if (!given.insert(port).second) continue;
    try {
      return Socket::Listen({"127.0.0.1", port}).port();
    } catch (const Error&) {
      continue;
    }
  }
}

inline RendezvousOptions LoopbackRank(int rank, int ranks, int port) {
  RendezvousOptions options;
  options.rank = rank;
  options.ranks = ranks;
  options.root = {{"127.0.0.1", port}};
  options.secret = "open sesame";
  options.version = "1";
  options.join_seconds = 600;  // nobody is late, even on a busy machine
  return options;
}

}  // namespace caffe::testing
