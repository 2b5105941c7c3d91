#include "caffe/distributed/tcp_communicator.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <latch>
#include <optional>
#include <thread>

#include "caffe/distributed/heartbeat.hpp"
#include "caffe/distributed/local_communicator.hpp"
#include "caffe/distributed/rendezvous/listener.hpp"
#include "caffe/distributed/tcp_transport.hpp"
#include "caffe/error.hpp"
#include "tests/distributed/exchange_blocks.hpp"
#include "tests/distributed/rank_values.hpp"
#include "tests/support/loopback_ranks.hpp"
#include "tests/support/test_clock.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using testing::Filled;
using testing::FreePort;
using ::testing::HasSubstr;
using testing::LoopbackRank;
using testing::RandomValues;
using testing::ViewOf;

using Body = std::function<void(Communicator&)>;

// Runs `body` for each rank on its own thread. Returns each one's error ("" for none).
std::vector<std::string> RunRanks(int ranks, const Body& body,
                                  const std::function<void(RendezvousOptions*)>& change = nullptr) {
  const int port = FreePort();
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::shared_ptr<Communicator> communicator;
      try {
        RendezvousOptions options = LoopbackRank(rank, ranks, port);
        if (change) change(&options);
        communicator = MakeTcpCommunicator(options);
        body(*communicator);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
        if (communicator) communicator->Abort(std::current_exception());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

template <typename T>
class TcpCommunicatorTest : public ::testing::Test {};
using TcpTypes = ::testing::Types<double, float, float16, bfloat16>;
TYPED_TEST_SUITE(TcpCommunicatorTest, TcpTypes);

// Expects each rank's means to have the same bits with threads and with processes. `machines`: the
// name of each rank's machine; if empty, all are this machine.
template <typename T>
void ExpectTheBitsOfThreads(int ranks, size_t count, DType wire,
                            const std::vector<std::string>& machines = {}) {
  auto values = RandomValues<T>(ranks, count), expected = values;
  const auto local = MakeLocalCommunicators(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&, rank] { local[rank]->AllReduceMean(ViewOf(expected[rank]), wire, Filled()); });
  }
  for (std::thread& thread : threads) thread.join();
  const auto errors = RunRanks(
      ranks,
      [&](Communicator& communicator) {
        communicator.AllReduceMean(ViewOf(values[communicator.rank()]), wire, Filled());
      },
      [&](RendezvousOptions* options) {
        if (!machines.empty()) options->host = machines[options->rank];
      });
  EXPECT_THAT(errors, Each(""));
  for (int rank = 0; rank < ranks && count > 0; ++rank) {
    EXPECT_EQ(std::memcmp(values[rank].data(), expected[rank].data(), count * sizeof(T)), 0)
        << "rank " << rank << " of " << ranks << ", " << count << " elements as " << Name(wire);
  }
}

TYPED_TEST(TcpCommunicatorTest, HasTheBitsOfThreads) {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{4}, size_t{300'000}}) {
      ExpectTheBitsOfThreads<TypeParam>(ranks, count, DType::kDouble);
    }
  }
}

TYPED_TEST(TcpCommunicatorTest, HasTheBitsOfThreadsInFewerBits) {
  for (const DType wire : {DType::kFloat, DType::kFloat16, DType::kBFloat16}) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{1'000'003}}) {
      ExpectTheBitsOfThreads<TypeParam>(3, count, wire);
    }
  }
}

TYPED_TEST(TcpCommunicatorTest, HasTheBitsOfThreadsOnMachinesWithSeveralRanks) {
  const std::vector<std::string> layouts[] = {
      {"a", "a", "b", "b"}, {"a", "a", "a", "b", "b"}, {"a", "b", "a", "b"}};
  for (const auto& machines : layouts) {
    const int ranks = static_cast<int>(machines.size());
    for (const DType wire : {DType::kDouble, DType::kBFloat16}) {
      for (const size_t count : {size_t{1}, size_t{3'000'017}}) {  // several blocks
        ExpectTheBitsOfThreads<TypeParam>(ranks, count, wire, machines);
      }
    }
  }
}

TEST(TcpCommunicator, CollectivesKeepTheirOrderAndThoseInPassesTheirs) {
  const auto errors = RunRanks(3, [](Communicator& communicator) {
    std::thread in_pass([&] {
      for (int i = 0; i < 200; ++i) {
        double number = i;
        communicator.AllReduceSumInPass({&number, 1});
        EXPECT_EQ(number, 3 * i);
      }
    });
    for (int i = 0; i < 200; ++i) {
      double numbers[] = {static_cast<double>(i), static_cast<double>(communicator.rank())};
      communicator.AllReduceSum(numbers);
      EXPECT_THAT(numbers, ::testing::ElementsAre(3 * i, 3));
    }
    in_pass.join();
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(TcpCommunicator, GathersTextsOfAnyLength) {
  const auto errors = RunRanks(3, [](Communicator& communicator) {
    const auto text = [](int rank) { return std::string(rank * 100'000, static_cast<char>(rank)); };
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(communicator.AllGather(text(communicator.rank())),
                  ::testing::ElementsAre(text(0), text(1), text(2)));
    }
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(TcpCommunicator, ExchangesBlocksOfAnyLengthInAPass) {
  const auto errors = RunRanks(3, [](Communicator& communicator) {
    for (int i = 0; i < 2; ++i) testing::ExchangeBlocks(communicator);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(TcpCommunicator, RefusesBlocksOfAnotherLengthThanExpected) {
  const auto errors = RunRanks(3, [](Communicator& communicator) {
    if (communicator.rank() == 2) return communicator.AllReduceSumInPass({});
    testing::ExchangeBlocks(communicator, /*surplus=*/1);
  });
  // The first rank that notices tells all.
  EXPECT_THAT(errors[1], AnyOf(HasSubstr("8 bytes in its collective 1 meets 7 bytes"),
                               HasSubstr("7 bytes in its collective 1 meets 6 bytes"),
                               HasSubstr("a tensor of 0 double in its collective 1")));
}

TEST(TcpCommunicator, TellsTensorsThatDiffer) {
  const auto errors = RunRanks(3, [](Communicator& communicator) {
    std::vector<float> values(communicator.rank() == 1 ? 4 : 3);
    communicator.AllReduceMean(ViewOf(values), DType::kDouble, Filled());
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("a tensor of 3 float in its collective 1"),
                                 HasSubstr("a tensor of 4 float in its collective 1"))));
}

TEST(TcpCommunicator, TellsTypesOfTravelThatDiffer) {
  const auto errors = RunRanks(2, [](Communicator& communicator) {
    std::vector<float> values(3);
    const DType wire = communicator.rank() == 1 ? DType::kBFloat16 : DType::kFloat;
    communicator.AllReduceMean(ViewOf(values), wire, Filled());
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("a tensor of 3 float in its collective 1"),
                                 HasSubstr("a tensor of 3 float sent as bfloat16 in its"))));
}

TEST(TcpCommunicator, AnErrorOfOneRankReachesAll) {
  const auto errors = RunRanks(3, [](Communicator& communicator) {
    if (communicator.rank() == 1) throw InvalidArgument("a record is not an image");
    double number = 1;
    communicator.AllReduceSum({&number, 1});
  });
  EXPECT_EQ(errors[1], "a record is not an image");
  for (const int rank : {0, 2}) {
    EXPECT_THAT(errors[rank],
                AllOf(HasSubstr("rank 1 (host "), HasSubstr("a record is not an image")));
  }
}

// Rank 0's connections close before its message is read. Time stands still, so rank 0 has all the
// time that it needs to send its message.
TEST(TcpCommunicator, Rank0MaySayWhyItsConnectionsClose) {
  const int port = FreePort();
  testing::TestClock clocks[3];
  std::vector<std::string> errors(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      Heartbeat heartbeat(LoopbackRank(rank, 3, port), clocks[rank]);
      if (rank == 0) clocks[1].AwaitWaits(1);  // until rank 0 decides
      if (rank == 2) clocks[0].AwaitWaits(1);
      const int accused = rank == 1 ? 0 : 2;
      try {
        std::rethrow_exception(heartbeat.ReportLoss(accused, "is not to be reached"));
      } catch (const DeviceError& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(errors, Each(HasSubstr("rank 2 (host ")));
}

TEST(TcpCommunicator, LeavingIsNoLoss) {
  for (int i = 0; i < 20; ++i) {
    const auto errors = RunRanks(3, [](Communicator& communicator) {
      double number = communicator.rank();
      communicator.AllReduceSum({&number, 1});
      EXPECT_EQ(number, 3);
    });
    EXPECT_THAT(errors, Each(""));
  }
}

TEST(TcpCommunicator, ARankThatLeavesTooEarlyIsNamed) {
  const auto errors = RunRanks(3, [](Communicator& communicator) {
    if (communicator.rank() == 2) return;
    double number = 1;
    communicator.AllReduceSum({&number, 1});
  });
  EXPECT_EQ(errors[2], "");
  for (const int rank : {0, 1}) EXPECT_THAT(errors[rank], HasSubstr("rank 2 (host "));
}

TEST(TcpCommunicator, RanksThatDoNotFitAreRefusedByAll) {
  struct Case {
    std::function<void(RendezvousOptions*)> change;
    const char* text;
  };
  const Case cases[] = {
      {[](RendezvousOptions* options) { options->ranks += options->rank == 2; },
       "was started as one of 4 ranks, rank 0 as one of 3"},
      {[](RendezvousOptions* options) { options->rank = options->rank == 2 ? 1 : options->rank; },
       "each rank needs a number of its own"},
      {[](RendezvousOptions* options) { options->rank = options->rank == 2 ? 3 : options->rank; },
       "rank 3 (host "},
      {[](RendezvousOptions* options) { options->version += options->rank == 2 ? "1" : ""; },
       "has version 11, rank 0 version 1"},
  };
  for (const Case& one : cases) {
    const auto errors = RunRanks(
        3, [](Communicator&) {}, one.change);
    EXPECT_THAT(errors, Each(HasSubstr(one.text)));
  }
}

// The deadline of operations that take milliseconds.
constexpr auto kNever = Socket::Clock::time_point::max();

// Connects as soon as somebody listens on the port.
Socket ConnectSoon(int port) {
  std::optional<Socket> socket;
  std::string why;
  while (!socket) socket = Socket::TryConnect({"127.0.0.1", port}, kNever, &why);
  return std::move(*socket);
}

TEST(TcpCommunicator, StrangersAtThePortDoNoHarm) {
  const int port = FreePort();
  std::thread unknown([&] {
    for (const char* const text : {"GET / HTTP/1.1\r\n\r\n", "", "\xff\xff\xff\xff\xff\xff"}) {
      ConnectSoon(port).Send({text, std::strlen(text)});
    }
  });
  std::vector<std::string> errors(2);
  const auto join = [&](int rank) {
    try {
      MakeTcpCommunicator(LoopbackRank(rank, 2, port));
    } catch (const std::exception& error) {
      errors[rank] = error.what();
    }
  };
  std::thread root(join, 0);
  unknown.join();
  join(1);
  root.join();
  EXPECT_THAT(errors, Each(""));
}

// A connection that is reset before anybody looks at it, as port scanners make.
void ConnectAndReset(int port) {
  const Socket socket = ConnectSoon(port);
  const linger at_once{1, 0};
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

TEST(TcpCommunicator, ConnectionsThatAreResetDoNoHarm) {
  Socket port = Socket::Listen({"127.0.0.1", 0});
  for (int i = 0; i < 5; ++i) ConnectAndReset(port.port());
  std::vector<Socket> idle(5);
  for (Socket& one : idle) one = ConnectSoon(port.port());
  Listener listener(&port, "open sesame", 2);
  std::optional<MessageStream> rank;
  std::thread client([&] {
    rank.emplace(ConnectSoon(port.port()));
    distributed::Hello hello;
    hello.set_rank(7);
    Authenticate(&*rank, "open sesame", hello, kNever, kNever, [] {});
  });
  int taken = 0;
  while (taken == 0) {
    listener.Poll({}, [&](const distributed::Hello& hello, IncomingConnection* connection) {
      taken = hello.rank();
      connection->Accept();
    });
  }
  client.join();
  EXPECT_EQ(taken, 7);
  EXPECT_EQ(listener.rejected(), "");
}

TEST(TcpCommunicator, StrangersTakeLittleMemoryAndLittleLog) {
  Socket port = Socket::Listen({"127.0.0.1", 0});
  Listener listener(&port, "open sesame", 2);
  const auto take = [](const distributed::Hello&, IncomingConnection*) {
    FAIL() << "nobody is a rank";
  };
  for (int i = 0; i < 10; ++i) {
    std::thread guesser([&] {
      MessageStream stream(ConnectSoon(port.port()));
      EXPECT_THROW(Authenticate(&stream, "a guess", {}, kNever, kNever, [] {}), InvalidArgument);
    });
    const int before = listener.rejected_count();
    while (listener.rejected_count() == before) listener.Poll({}, take);
    guesser.join();
  }
  EXPECT_THAT(listener.rejected(), HasSubstr(", and 7 more"));
  EXPECT_LT(listener.rejected().size(), 500);
  // An unauthenticated client announces a message of 1 MiB: the connection is closed.
  Socket socket = ConnectSoon(port.port());
  const char length[] = {0, 0, 16, 0};
  socket.Send(length);
  const auto receive = [&] {
    while (true) {
      listener.Poll({}, take);
      char bytes[64];
      socket.Receive(bytes);
    }
  };
  EXPECT_THROW(receive(), ConnectionLost);
}

// A connection from one of this machine's addresses.
Socket ConnectFrom(const char* host, int port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  EXPECT_EQ(::inet_pton(AF_INET, host, &address.sin_addr), 1);
  EXPECT_EQ(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr), 1);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
  return Socket(descriptor);
}

bool IsLost(Socket* socket) {
  char bytes[64];
  try {
    while (socket->Receive(bytes) > 0) {
    }
    return false;
  } catch (const ConnectionLost&) {
    return true;
  }
}

TEST(TcpCommunicator, OfTooManyConnectionsTheOldestIsDropped) {
  Socket port = Socket::Listen({"127.0.0.1", 0});
  Listener listener(&port, "open sesame", 2);
  std::vector<Socket> connections;
  const auto lost = [&] {
    return std::find_if(connections.begin(), connections.end(),
                        [](Socket& one) { return IsLost(&one); });
  };
  while (lost() == connections.end()) {
    connections.push_back(
        ConnectFrom(connections.size() % 2 == 0 ? "127.0.0.2" : "127.0.0.1", port.port()));
    listener.Poll(
        {}, [](const distributed::Hello&, IncomingConnection*) { FAIL() << "nobody is a rank"; });
  }
  EXPECT_EQ(lost() - connections.begin(), 0);
}

TEST(TcpCommunicator, ErrorTextsOfAnyLengthAndEncodingReachAll) {
  for (const std::string& text :
       {std::string("no caf\xe9.prototxt"), std::string(20'000'000, 'x')}) {
    const auto errors = RunRanks(2, [&](Communicator& communicator) {
      if (communicator.rank() == 1) throw InvalidArgument(text);
      double number = 1;
      communicator.AllReduceSum({&number, 1});
    });
    EXPECT_THAT(errors[0], AllOf(HasSubstr("rank 1 (host "), HasSubstr(text.substr(0, 6))));
  }
}

TEST(TcpCommunicator, ARankOfAnotherRunIsRefused) {
  const int port = FreePort();
  std::vector<std::string> errors(3);
  std::vector<std::thread> threads;
  std::latch refused(1);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      try {
        RendezvousOptions options = LoopbackRank(std::min(i, 1), 2, port);
        options.run = i == 2 ? "job 8" : "job 7";
        if (i == 1) refused.wait();  // the other one first
        MakeTcpCommunicator(options);
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
      if (i == 2) refused.count_down();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "");
  EXPECT_THAT(errors[2], HasSubstr("it belongs to another run"));
}

TEST(TcpCommunicator, APortInUseIsTold) {
  const Socket used = Socket::Listen({"127.0.0.1", 0});
  try {
    MakeTcpCommunicator(LoopbackRank(0, 2, used.port()));
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("another program uses this port"));
  }
}

// Private addresses of rank 0's machine may be another machine's where a rank connects to them.
TEST(TcpCommunicator, AllAddressesOfRank0AreTried) {
  const int port = FreePort();
  Socket other_port = Socket::Listen({"127.0.0.1", 0});
  std::atomic<bool> is_over = false;
  std::thread other_run([&] {
    Listener listener(&other_port, "another secret", 2);
    while (!is_over) listener.Poll({}, [](const auto&, auto*) {});
  });
  std::vector<std::string> errors(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        RendezvousOptions options = LoopbackRank(rank, 2, port);
        const std::vector<Address> others = {{"127.0.0.1", FreePort()},
                                             {"127.0.0.1", other_port.port()}};
        if (rank == 1) options.root.insert(options.root.begin(), others.begin(), others.end());
        MakeTcpCommunicator(options);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  is_over = true;
  other_run.join();
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "");
}

TEST(TcpCommunicator, AHostWithoutAddressIsTold) {
  RendezvousOptions options = LoopbackRank(1, 2, 29500);
  options.root[0].host = "no-such-host.invalid";
  options.join_seconds = 0.3;  // the name may become known until then
  try {
    MakeTcpCommunicator(options);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("host 'no-such-host.invalid' has no address"));
  }
}

}  // namespace
}  // namespace caffe
