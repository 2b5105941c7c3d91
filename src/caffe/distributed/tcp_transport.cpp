#include "caffe/distributed/tcp_transport.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "caffe/distributed/rendezvous/listener.hpp"

namespace caffe {
namespace {

using Links = std::vector<Socket>;  // by rank; this rank's own is not open

class TcpTransport final : public Transport {
 public:
  TcpTransport(const RendezvousOptions& options, Links links, Heartbeat* heartbeat)
      : rank_(options.rank),
        patience_(options.silence_seconds),
        links_(std::move(links)),
        heartbeat_(*heartbeat),
        wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (wake_ < 0) throw DeviceError("the system gives no eventfd; end other programs");
  }
  ~TcpTransport() override { ::close(wake_); }

  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(links_.size()); }

  void Exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) override {
    std::vector<Work> work(links_.size());
    for (const Outgoing& one : outgoing) work.at(one.to).outgoing.push_back(one.bytes);
    for (const Incoming& one : incoming) work.at(one.from).incoming.push_back(one.bytes);
    while (true) {
      ThrowIfAborted();
      bool is_done = true;
      for (size_t rank = 0; rank < work.size(); ++rank) {
        Advance(static_cast<int>(rank), &work[rank]);
        is_done &= work[rank].is_done();
      }
      if (is_done) return;
      ThrowIfStuck(work);
      Wait(work);
    }
  }

  void Abort(std::exception_ptr error) override {
    {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::move(error);
    }
    const uint64_t one = 1;  // never read, so that every wait from now on ends at once
    [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
  }
  void ThrowIfAborted() override {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  // Messages that remain to be sent to and received from one rank.
  struct Work {
    std::vector<std::span<const char>> outgoing;
    std::vector<std::span<char>> incoming;
    size_t next_out = 0, next_in = 0;  // messages that are not complete
    Socket::Clock::time_point moved = Socket::Clock::now();
    bool is_done() const { return !sends() && !receives(); }
    bool sends() const { return next_out < outgoing.size(); }
    bool receives() const { return next_in < incoming.size(); }
  };

  // Sends or receives as much of a message as possible without blocking. Returns true if it is
  // complete.
  template <typename Bytes, typename Fn>
  static bool Complete(Bytes* bytes, Work* work, const Fn& move) {
    while (!bytes->empty()) {
      const size_t count = move(*bytes);
      if (count == 0) return false;
      *bytes = bytes->subspan(count);
      work->moved = Socket::Clock::now();
    }
    return true;
  }

  // Sends to and receives from one rank without blocking.
  void Advance(int rank, Work* work) {
    if (work->is_done()) return;
    CAFFE_ASSERT(links_[rank].is_open(), "rank ", rank_, " exchanges with rank ", rank);
    try {
      while (work->sends() && Complete(&work->outgoing[work->next_out], work,
                                       [&](auto bytes) { return links_[rank].Send(bytes); })) {
        ++work->next_out;
      }
      while (work->receives() && Complete(&work->incoming[work->next_in], work, [&](auto bytes) {
               return links_[rank].Receive(bytes);
             })) {
        ++work->next_in;
      }
    } catch (const ConnectionLost& error) {
      ThrowLoss(rank, StrCat("is not to be reached: ", error.what()));
    }
  }

  // After rank 0 has left, nobody else notices a rank that is silent.
  void ThrowIfStuck(const std::vector<Work>& work) {
    const std::optional<Socket::Clock::time_point> left = heartbeat_.WhenRank0Left();
    if (!left) return;
    for (size_t rank = 0; rank < work.size(); ++rank) {
      if (work[rank].is_done() ||
          Socket::Clock::now() - std::max(*left, work[rank].moved) < patience_) {
        continue;
      }
      ThrowLoss(static_cast<int>(rank),
                StrCat("rank ", rank_, " has waited for it for ", patience_.count(),
                       " s, since rank 0 has ended; its machine or its network is down, or the "
                       "process is stopped"));
    }
  }

  void ThrowLoss(int rank, const std::string& why) {
    Abort(heartbeat_.ReportLoss(rank, why));
    ThrowIfAborted();  // the first one
  }

  void Wait(const std::vector<Work>& work) const {
    std::vector<pollfd> waiting{{wake_, POLLIN, 0}};
    for (size_t rank = 0; rank < work.size(); ++rank) {
      const int events = (work[rank].sends() ? POLLOUT : 0) | (work[rank].receives() ? POLLIN : 0);
      if (events == 0) continue;
      waiting.push_back({links_[rank].descriptor(), static_cast<short>(events), 0});
    }
    ::poll(waiting.data(), waiting.size(), 1000);  // ThrowIfStuck() looks at the time
  }

  const int rank_;
  const std::chrono::duration<double> patience_;
  Links links_;
  Heartbeat& heartbeat_;
  const int wake_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

distributed::Hello HelloOf(const RendezvousOptions& options, int channel) {
  distributed::Hello hello;
  hello.set_version(options.version);
  hello.set_rank(options.rank);
  hello.set_ranks(options.ranks);
  hello.set_run(options.run);
  hello.set_channel(channel);
  return hello;
}

// Connects to a rank with a lower number.
Socket Connect(const RendezvousOptions& options, Heartbeat* heartbeat, int rank, int channel,
               Socket::Clock::time_point deadline) {
  const Address& address = heartbeat->members()[rank].address;
  std::string why;
  try {
    auto stream = ConnectToRank(
        std::span(&address, 1), options.secret, HelloOf(options, channel), deadline, {},
        [&] { heartbeat->ThrowIfLost(); }, &why);
    if (stream) return stream->Release();
  } catch (const Error& error) {
    why = error.what();
  }
  std::rethrow_exception(heartbeat->ReportLoss(
      rank, StrCat("rank ", options.rank, " cannot connect to it at ", ToText(address), " (", why,
                   "), though both reach rank 0; see that nothing between the machines refuses "
                   "ports")));
}

// Accepts the ranks with higher numbers.
class LinkAcceptor {
 public:
  LinkAcceptor(const RendezvousOptions& options, Heartbeat* heartbeat, Socket* port,
               std::vector<Links>* channels)
      : options_(options),
        heartbeat_(*heartbeat),
        listener_(port, options.secret, options.ranks * static_cast<int>(channels->size())),
        channels_(*channels) {}

  void Await(Socket::Clock::time_point deadline) {
    size_t missing = channels_.size() * (options_.ranks - 1 - options_.rank);
    while (missing > 0) {
      heartbeat_.ThrowIfLost();
      if (Socket::Clock::now() > deadline) std::rethrow_exception(ReportMissing());
      listener_.Poll({}, [&](const distributed::Hello& hello, IncomingConnection* connection) {
        missing -= Take(hello, connection);
      });
    }
  }

 private:
  bool Take(const distributed::Hello& hello, IncomingConnection* connection) {
    const bool is_known = hello.run() == options_.run && hello.rank() > options_.rank &&
                          hello.rank() < options_.ranks && hello.channel() >= 0 &&
                          hello.channel() < static_cast<int>(channels_.size()) &&
                          !channels_[hello.channel()][hello.rank()].is_open();
    if (!is_known) {
      connection->Reject("it is not awaited");
      return false;
    }
    connection->Accept();
    channels_[hello.channel()][hello.rank()] = connection->stream().Release();
    return true;
  }

  std::exception_ptr ReportMissing() {
    for (int rank = options_.rank + 1; rank < options_.ranks; ++rank) {
      for (const Links& links : channels_) {
        if (links[rank].is_open()) continue;
        return heartbeat_.ReportLoss(
            rank, StrCat("does not connect to rank ", options_.rank, " on port ", options_.port,
                         "; see that nothing between the machines refuses ports"));
      }
    }
    return std::make_exception_ptr(InternalError("no rank is missing"));
  }

  const RendezvousOptions& options_;
  Heartbeat& heartbeat_;
  Listener listener_;
  std::vector<Links>& channels_;
};

}  // namespace

std::vector<std::shared_ptr<Transport>> ConnectRanks(const RendezvousOptions& options,
                                                     Heartbeat* heartbeat, Socket* port,
                                                     int count) {
  const auto deadline =
      Socket::Clock::now() + std::chrono::duration_cast<Socket::Clock::duration>(
                                 std::chrono::duration<double>(options.join_seconds));
  std::vector<Links> channels(count);
  for (Links& links : channels) links.resize(options.ranks);
  for (int rank = 0; rank < options.rank; ++rank) {
    for (int channel = 0; channel < count; ++channel) {
      channels[channel][rank] = Connect(options, heartbeat, rank, channel, deadline);
    }
  }
  LinkAcceptor(options, heartbeat, port, &channels).Await(deadline);
  std::vector<std::shared_ptr<Transport>> transports;
  for (Links& links : channels) {
    transports.push_back(std::make_shared<TcpTransport>(options, std::move(links), heartbeat));
  }
  return transports;
}

}  // namespace caffe
