// SimulatedNetwork: TCP between the processes of a simulation, one on each host.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace caffe::fuzz {

class Simulation;

// The host of process n has the address 10.0.0.(n + 1). Methods correspond to the system's calls
// with these names: they return a number, or a negated errno. All descriptors are non-blocking.
class SimulatedNetwork {
 public:
  struct Options {
    int64_t least_delay = 20'000, most_delay = 200'000;  // delay of a packet
    int most_bytes = 65536;                              // sent or received per call
    int buffer = 1 << 18;                                // limit of unread bytes
    // A connection that is reset loses the data in flight, as if a packet had been lost before.
    bool resets_lose_packets = false;
  };

  SimulatedNetwork(Simulation* simulation, const Options& options)
      : simulation_(*simulation), options_(options) {}

  static std::string AddressOf(int host);

  // Descriptors of this network, which the system does not use.
  static bool Has(int descriptor) { return descriptor >= kFirst; }

  int Open();
  int OpenEvent();
  int Bind(int descriptor, uint16_t port);
  int Listen(int descriptor);
  int Connect(int descriptor, int host, uint16_t port);
  int Accept(int descriptor);
  int64_t Send(int descriptor, const char* bytes, size_t count);
  int64_t Receive(int descriptor, char* bytes, size_t count);
  int64_t WriteEvent(int descriptor, uint64_t number);
  int64_t ReadEvent(int descriptor, uint64_t* number);
  int EndSending(int descriptor);
  int Close(int descriptor);
  void KeepAlive(int descriptor);
  void SetUserTimeout(int descriptor, int64_t timeout);
  // Returns the connection's error, and clears it.
  int TakeError(int descriptor);
  // Host and port of this end or the other one.
  std::pair<int, uint16_t> NameOf(int descriptor) const;
  std::pair<int, uint16_t> PeerOf(int descriptor) const;
  bool IsReadable(int descriptor);
  bool IsWritable(int descriptor);

  // No packet passes between two hosts until Mend(). Packets that are sent meanwhile arrive later,
  // unless the connection has timed out.
  void Cut(int host, int other);
  void Mend(int host, int other);
  // Resets one of the host's connections on both sides. Returns the other host, or -1 if there is
  // no connection.
  int ResetOne(int host);
  // Closes, like the system, all descriptors of a process that has ended.
  void Exit(int process);

 private:
  static constexpr int kFirst = 1'000'000;

  struct Packet {
    enum Kind { kData, kEnd, kReset } kind;
    int64_t arrives;
    std::string bytes;
  };
  struct End {
    int host = 0;
    uint16_t port = 0;
    std::weak_ptr<End> other;
    int other_host = -1;
    uint16_t other_port = 0;
    bool is_open = true, is_event = false, listens = false, connects = false, is_connected = false;
    std::deque<std::shared_ptr<End>> arrivals;  // at a listening port
    std::deque<Packet> in_flight;
    std::string received;
    int64_t last_arrival = 0;
    bool has_ended = false;      // the other end sends no more
    bool sends_no_more = false;  // this end sends no more
    int error = 0;
    bool keeps_alive = false;
    int64_t user_timeout = 0, patience = 0;
    int64_t unanswered_since = -1;  // time of the first packet sent while the link was cut
    uint64_t number = 0;            // value of an event
  };
  using Ends = std::map<int, std::shared_ptr<End>>;

  End& Find(int descriptor) const { return *ends_.at(descriptor); }
  int Add(std::shared_ptr<End> end);
  int64_t Delay();
  bool IsCut(int host, int other) const;
  void Arrive(const std::shared_ptr<End>& from, uint16_t port);
  void Push(End* to, Packet::Kind kind, std::string bytes);
  void Advance(End* end);
  void CheckTimeout(End* end);
  void WakeAtTimeout(const End& end);
  void Shut(End* end);

  Simulation& simulation_;
  const Options options_;
  Ends ends_;  // by descriptor
  int next_ = kFirst;
  uint16_t next_port_ = 40000;
  std::map<std::pair<int, int>, int64_t> cuts_;  // pairs of hosts, and start times
};

}  // namespace caffe::fuzz
