#include "caffe/distributed/rendezvous/rendezvous.hpp"

#include <unistd.h>

#include "caffe/core/printable.hpp"
#include "caffe/distributed/rendezvous/listener.hpp"

namespace caffe {
namespace {

// How much longer other ranks wait than rank 0, which decides when time is up.
constexpr std::chrono::seconds kGrace{10};
// How long rank 0 still answers late ranks after the rendezvous has failed.
constexpr std::chrono::seconds kLinger{1};

Socket::Clock::time_point DeadlineOf(const RendezvousOptions& options) {
  return Socket::Clock::now() + std::chrono::duration_cast<Socket::Clock::duration>(
                                    std::chrono::duration<double>(options.join_seconds));
}

distributed::Hello OwnHello(const RendezvousOptions& options) {
  distributed::Hello hello;
  hello.set_version(options.version);
  hello.set_rank(options.rank);
  hello.set_ranks(options.ranks);
  hello.set_host(options.host);
  hello.set_process(::getpid());
  hello.set_port(options.port);
  hello.set_run(options.run);
  return hello;
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1";
}

// Ranks of one machine need no port that other machines can reach.
Address PlaceToListen(const Address& root) {
  const bool is_loopback = IsLoopback(root.host);
  // A host's own name often resolves to its loopback address (/etc/hosts on Debian), so listen on
  // all addresses.
  return {is_loopback ? root.host : "", root.port};
}

class Root {
 public:
  explicit Root(const RendezvousOptions& options)
      : options_(options),
        deadline_(DeadlineOf(options)),
        port_(options.root_port != nullptr
                  ? options.root_port
                  : std::make_shared<Socket>(Socket::Listen(PlaceToListen(options.root[0])))),
        listener_(port_.get(), options.secret, options.ranks) {
    joined_.members.resize(static_cast<size_t>(options.ranks));
    joined_.members[0] = {Printable(options.host), ::getpid(), {"", options.port}};
  }

  Joined Await() {
    try {
      return AwaitAll();
    } catch (const Error&) {
      if (!failure_.empty()) TellFailure();
      throw;
    }
  }

 private:
  Joined AwaitAll() {
    while (static_cast<int>(joined_.streams.size()) + 1 < options_.ranks) {
      if (Socket::Clock::now() >= deadline_) Fail<DeviceError>(WhoIsMissing());
      TakeConnections();
      CheckJoined();
    }
    SendRoster();
    return std::move(joined_);
  }

  void TakeConnections() {
    std::vector<int> joined;
    if (failure_.empty()) {  // else they only close their connections
      for (auto& [rank, stream] : joined_.streams) {
        joined.push_back(stream.socket().descriptor());
      }
    }
    listener_.Poll(joined, [this](const distributed::Hello& hello, IncomingConnection* connection) {
      Take(hello, connection);
    });
  }

  void Take(const distributed::Hello& hello, IncomingConnection* connection) {
    if (!failure_.empty()) return connection->Reject(failure_);
    const std::string host = connection->host();
    if (hello.run() != options_.run) {
      connection->Reject("it belongs to another run");
      listener_.CountRejected(StrCat("a connection from ", host, " belongs to another run"));
      return;
    }
    // A rank of this machine may have connected from a loopback address, by which others cannot
    // reach it.
    const Member member{
        Printable(hello.host()), hello.process(), {IsLoopback(host) ? "" : host, hello.port()}};
    const std::string why = Contradiction(hello, member);
    if (!why.empty()) {
      connection->Reject(why);
      Fail<InvalidArgument>(why);
    }
    connection->Accept();
    joined_.members[hello.rank()] = member;
    joined_.streams.emplace(hello.rank(), std::move(connection->stream()));
  }

  // Why this rank cannot join; empty if it can.
  std::string Contradiction(const distributed::Hello& hello, const Member& member) const {
    const std::string name = Describe(hello.rank(), member);
    if (hello.ranks() != options_.ranks) {
      return StrCat(name, " was started as one of ", hello.ranks(), " ranks, rank 0 as one of ",
                    options_.ranks, "; give all the same number");
    }
    if (hello.rank() < 1 || hello.rank() >= options_.ranks) {
      return StrCat(name, " is none of 1 to ", options_.ranks - 1,
                    "; each rank needs a number of its own, and rank 0 has come");
    }
    if (joined_.streams.count(hello.rank()) != 0) {
      return StrCat(name, " is ", Describe(hello.rank(), joined_.members[hello.rank()]),
                    " already; each rank needs a number of its own");
    }
    if (hello.version() != options_.version) {
      return StrCat(name, " has version ", Printable(hello.version()), ", rank 0 version ",
                    options_.version, "; install the same on all machines");
    }
    return "";
  }

  // Joined ranks send nothing until the roster arrives; a closed connection means that one has
  // ended.
  void CheckJoined() {
    for (auto& [rank, stream] : joined_.streams) {
      distributed::Notice notice;
      try {
        stream.Receive(&notice);
      } catch (const Error&) {
        Fail<DeviceError>(
            StrCat(Describe(rank, joined_.members[rank]), " has ended before all ranks had come"));
      }
    }
  }

  std::string WhoIsMissing() const {
    std::string missing;
    int count = 0;
    for (int rank = 1; rank < options_.ranks; ++rank) {
      if (joined_.streams.count(rank) != 0) continue;
      ++count;
      if (count <= 10) missing += StrCat(count > 1 ? ", " : "", rank);
      if (count == 11) missing += ", ...";
    }
    const char* const cure =
        options_.ranks_run ? "; MPI has started them, so what they report themselves is the reason"
                           : "; start one process for each, with the same store and secret";
    return StrCat("of ", options_.ranks, " ranks, ", count, " did not come to ",
                  ToText(options_.root[0]), " within ", options_.join_seconds, " s (", missing, ")",
                  cure, listener_.rejected());
  }

  template <typename Failure>
  [[noreturn]] void Fail(const std::string& why) {
    throw Failure(failure_ = why);
  }

  // Tells all joined ranks, and those that connect within a second, why there is no run.
  void TellFailure() {
    distributed::Notice notice;
    notice.set_loss(failure_);
    for (auto& [rank, stream] : joined_.streams) {
      try {
        stream.Send(notice);
      } catch (const ConnectionLost&) {
      }
    }
    const Socket::Clock::time_point end = Socket::Clock::now() + kLinger;
    while (Socket::Clock::now() < end) {
      try {
        TakeConnections();
      } catch (const Error&) {  // the first reason counts
      }
    }
  }

  void SendRoster() {
    distributed::Notice notice;
    for (const Member& member : joined_.members) {
      distributed::Member& one = *notice.add_roster();
      one.set_host(member.host);
      one.set_process(member.process);
      one.set_address(member.address.host);
      one.set_port(member.address.port);
    }
    for (auto& [rank, stream] : joined_.streams) {
      try {
        stream.Send(notice);
      } catch (const ConnectionLost&) {
        Fail<DeviceError>(
            StrCat(Describe(rank, joined_.members[rank]), " has ended before all ranks had come"));
      }
    }
  }

  const RendezvousOptions& options_;
  const Socket::Clock::time_point deadline_;
  const std::shared_ptr<Socket> port_;
  Listener listener_;
  Joined joined_;
  std::string failure_;  // why there is no run
};

MessageStream ConnectToRoot(const RendezvousOptions& options, Socket::Clock::time_point deadline) {
  std::string why;
  auto stream = ConnectToRank(
      options.root, options.secret, OwnHello(options), deadline, kGrace, [] {}, &why);
  if (stream) return std::move(*stream);
  throw DeviceError(StrCat("nobody answers within ", options.join_seconds, " s (", why, "); ",
                           options.ranks_run ? "" : "start rank 0 on that host, and ",
                           "see that nothing between the machines refuses this port"));
}

Joined JoinRoot(const RendezvousOptions& options) {
  const Socket::Clock::time_point deadline = DeadlineOf(options);
  MessageStream stream = ConnectToRoot(options, deadline);
  distributed::Notice notice;
  try {
    // Rank 0 decides when time is up; it then sends the reason.
    if (!stream.Await(&notice, deadline + 2 * kGrace, [] {})) {
      throw DeviceError("it has not said that all ranks have come");
    }
  } catch (const ConnectionLost&) {
    throw DeviceError("it has ended before all ranks had come; its own message says why");
  }
  if (!notice.loss().empty()) throw DeviceError(Printable(notice.loss()));
  Joined joined;
  for (const distributed::Member& one : notice.roster()) {
    joined.members.push_back({Printable(one.host()), one.process(), {one.address(), one.port()}});
  }
  CAFFE_ASSERT(joined.members.size() == static_cast<size_t>(options.ranks));
  // Rank 0 cannot know by which address others reach the ranks of its own machine; use the one by
  // which this rank has reached rank 0.
  for (Member& member : joined.members) {
    if (member.address.host.empty()) member.address.host = stream.socket().peer_host();
  }
  joined.streams.emplace(0, std::move(stream));
  return joined;
}

}  // namespace

std::string Describe(int rank, const Member& member) {
  return StrCat("rank ", rank, " (host ", member.host, ", process ", member.process, ")");
}

Joined Rendezvous(const RendezvousOptions& options) {
  if (options.rank == 0) return Root(options).Await();
  return WithContext(StrCat("rank ", options.rank, ", rank 0 at ", ToText(options.root[0])),
                     [&] { return JoinRoot(options); });
}

}  // namespace caffe
