// Ranks that do not join, or fall silent: results that need waiting. A pause of this process of up
// to ten seconds changes no result; scenarios that wait equally long run in parallel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "caffe/distributed/heartbeat.hpp"
#include "caffe/distributed/tcp_communicator.hpp"
#include "caffe/distributed/tcp_transport.hpp"
#include "caffe/error.hpp"
#include "caffe/scaling.hpp"
#include "tests/support/loopback_ranks.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::FreePort;
using ::testing::HasSubstr;
using testing::LoopbackRank;

// Longer than the pause, so that ranks that join do so in time.
constexpr double kJoinSeconds = 12;
// Shorter pauses than this leave heartbeats in time; longer ones than 5 s do not count as silence.
constexpr double kSilenceSeconds = 8;

using Work = std::function<void()>;

void RunSideBySide(const std::vector<Work>& all) {
  std::vector<std::thread> threads;
  for (const Work& one : all) threads.emplace_back(one);
  for (std::thread& thread : threads) thread.join();
}

// The errors of these ranks, which run in a thread each.
std::vector<std::string> ErrorsOf(const std::vector<int>& ranks,
                                  const std::function<void(int rank)>& body) {
  std::vector<std::string> errors(*std::max_element(ranks.begin(), ranks.end()) + 1);
  std::vector<Work> all;
  for (const int rank : ranks) {
    all.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const Error& error) {
        errors[rank] = error.what();
      }
    });
  }
  RunSideBySide(all);
  return errors;
}

void TellWhoDoesNotCome(bool ranks_run, const std::string& cure) {
  const int port = FreePort();
  const auto errors = ErrorsOf({0, 2}, [&](int rank) {
    RendezvousOptions options = LoopbackRank(rank, 3, port);
    options.join_seconds = kJoinSeconds;
    options.ranks_run = ranks_run;
    MakeTcpCommunicator(options);
  });
  for (const int rank : {0, 2}) {
    EXPECT_THAT(errors[rank], HasSubstr("of 3 ranks, 1 did not come to 127.0.0.1"));
    EXPECT_THAT(errors[rank], HasSubstr("within 12 s (1); " + cure));
  }
}

void RefuseAndNameAnotherSecret() {
  const int port = FreePort();
  const auto errors = ErrorsOf({0, 1}, [&](int rank) {
    RendezvousOptions options = LoopbackRank(rank, 2, port);
    options.join_seconds = kJoinSeconds;
    if (rank == 1) options.secret = "guess";
    MakeTcpCommunicator(options);
  });
  EXPECT_THAT(errors[0], AllOf(HasSubstr("of 2 ranks, 1 did not come"),
                               HasSubstr("a connection from 127.0.0.1 has another secret")));
  EXPECT_THAT(errors[1], HasSubstr("it refuses this rank: its secret is another one"));
}

TEST(RanksInTime, ThoseThatComeAreToldApartFromThoseThatDoNot) {
  RunSideBySide({[] { TellWhoDoesNotCome(false, "start one process for each"); },
                 [] { TellWhoDoesNotCome(true, "MPI has started them"); },
                 RefuseAndNameAnotherSecret});
}

// The rank has sent its part of the last collective to rank 0, and nothing to rank 1.
void NameARankThatIsStoppedInTheLastCollective() {
  const int port = FreePort();
  std::promise<void> end;
  const auto errors = ErrorsOf({0, 1, 2}, [&](int rank) {
    RendezvousOptions options = LoopbackRank(rank, 3, port);
    options.silence_seconds = kSilenceSeconds;
    Socket own = Socket::Listen({"127.0.0.1", 0});
    options.port = own.port();
    Heartbeat heartbeat(options);
    const auto transport = ConnectRanks(options, &heartbeat, &own, 1)[0];
    char byte = 0;
    const Transport::Outgoing outgoing{0, {&byte, 1}};
    const Transport::Incoming incoming{2, {&byte, 1}};
    if (rank == 0) transport->Exchange({}, {&incoming, 1});
    if (rank == 2) {
      transport->Exchange({&outgoing, 1}, {});
      end.get_future().wait();
    }
    if (rank == 1) {
      try {
        transport->Exchange({}, {&incoming, 1});
      } catch (...) {
        end.set_value();
        throw;
      }
    }
  });
  EXPECT_THAT(errors[1], AllOf(HasSubstr("rank 2 (host "), HasSubstr("since rank 0 has ended")));
}

// The rank has joined, but connects to nobody and sends no heartbeats.
void EndAllForARankThatGoesSilentWhileTheyConnect() {
  const int port = FreePort();
  std::promise<void> end;
  std::atomic<int> left = 2;
  const auto errors = ErrorsOf({0, 1, 2}, [&](int rank) {
    RendezvousOptions options = LoopbackRank(rank, 3, port);
    options.silence_seconds = kSilenceSeconds;
    Socket own = Socket::Listen({"127.0.0.1", 0});
    options.port = own.port();
    if (rank == 1) {
      const Joined joined = Rendezvous(options);
      end.get_future().wait();
      return;
    }
    try {
      MakeTcpCommunicator(options);
    } catch (...) {
      if (--left == 0) end.set_value();
      throw;
    }
  });
  for (const int rank : {0, 2}) {
    EXPECT_THAT(errors[rank],
                AllOf(HasSubstr("rank 1 (host "), HasSubstr("has sent no heartbeat for 8 s")));
  }
}

TEST(RanksInTime, OneThatFallsSilentIsNamed) {
  RunSideBySide(
      {NameARankThatIsStoppedInTheLastCollective, EndAllForARankThatGoesSilentWhileTheyConnect});
}

// The processor times of the fastest runs: neither pauses nor other programs make them much longer.
// The cost of a moved byte is what remains of them, and may be 0.
TEST(ScalingModel, TheCostOfTheHostIsMeasured) {
  const HostCost cost = MeasureHostCost();
  for (const double seconds_per_byte : {cost.per_summed_byte, cost.per_rounded_byte}) {
    EXPECT_GT(seconds_per_byte, 1e-12) << "a terabyte per second";
    EXPECT_LT(seconds_per_byte, 1e-7) << "ten megabytes per second";
  }
  EXPECT_GE(cost.per_byte, 0);
  EXPECT_LT(cost.per_byte, 1e-7);
  EXPECT_GT(cost.per_message, 1e-8);
  EXPECT_LT(cost.per_message, 1e-2);
  EXPECT_GE(cost.latency, 0);
}

}  // namespace
}  // namespace caffe
