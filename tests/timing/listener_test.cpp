// Connections of ranks among those of proxies and unknown. Each wait here is for an event that
// occurs; a pause of this process changes nothing.
#include "caffe/distributed/rendezvous/listener.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "caffe/distributed/rendezvous/handshake.hpp"
#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

constexpr char kSecret[] = "secret";

Socket::Clock::time_point InAMinute() {
  return Socket::Clock::now() + std::chrono::minutes(1);
}

Socket AwaitConnection(Socket* port) {
  while (true) {
    pollfd waiting{port->descriptor(), POLLIN, 0};
    ::poll(&waiting, 1, 1000);
    if (auto socket = port->Accept()) return std::move(*socket);
  }
}

// Serves a port until `greeting` has an answer. Returns whether a rank was welcomed.
bool Serve(Listener* listener, const std::future<void>& greeting) {
  bool is_welcomed = false;
  while (greeting.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    listener->Poll({}, [&](const distributed::Hello&, IncomingConnection* connection) {
      connection->Accept();
      is_welcomed = true;
    });
  }
  return is_welcomed;
}

// A connection from another address of this machine.
Socket ConnectFrom(const char* host, int port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, host, &address.sin_addr);
  EXPECT_EQ(::bind(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(::connect(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address),
            0);
  return socket;
}

TEST(ListenerInTime, ARankWhoseConnectionsAreClosedComesAgain) {
  Socket port = Socket::Listen({"127.0.0.1", 0});
  const Address address{"127.0.0.1", port.port()};
  auto greeting = std::async(std::launch::async, [&] {
    std::string why;
    EXPECT_TRUE(ConnectToRank(
        std::span(&address, 1), kSecret, {}, InAMinute(), {}, [] {}, &why))
        << why;
  });
  for (int closed = 0; closed < 3; ++closed) AwaitConnection(&port);
  Listener listener(&port, kSecret, 2);
  EXPECT_TRUE(Serve(&listener, greeting));
}

TEST(ListenerInTime, ARankSaysWhyItCouldNotEnter) {
  Socket port = Socket::Listen({"127.0.0.1", 0});
  const Address address{"127.0.0.1", port.port()};
  auto entering = std::async(std::launch::async, [&] {
    std::string why;
    const auto is_enough = [&] {
      if (!why.empty()) throw DeviceError("enough");
    };
    EXPECT_THROW(
        ConnectToRank(std::span(&address, 1), kSecret, {}, InAMinute(), {}, is_enough, &why),
        DeviceError);
    return why;
  });
  AwaitConnection(&port);
  EXPECT_EQ(entering.get(),
            "connections are accepted there and closed, as by a proxy without a server");
}

// The error of ConnectToRank() if a server listens that greets everybody with this text.
std::string ErrorAt(const std::string& greeting) {
  Socket port = Socket::Listen({"127.0.0.1", 0});
  const Address address{"127.0.0.1", port.port()};
  const auto deadline = greeting.empty() ? Socket::Clock::now() : InAMinute();
  std::string why;
  auto entering = std::async(std::launch::async, [&] {
    MessageStream stream(*Socket::TryConnect(address, InAMinute(), &why));
    return testing::ErrorText<DeviceError>(
        [&] { Authenticate(&stream, kSecret, {}, deadline, deadline, [] {}); });
  });
  Socket server = AwaitConnection(&port);
  server.Send(greeting);
  return entering.get();
}

TEST(ListenerInTime, AnotherProgramOnThePortIsNamed) {
  EXPECT_EQ(
      ErrorAt("SSH-2.0-OpenSSH_9.2\r\n"),
      "another program listens on that port (what came is not a message of a rank); give the run "
      "another one");
  EXPECT_EQ(
      ErrorAt(""),
      "it accepts the connection, but sends nothing; its process is stopped, or another program "
      "listens on that port: give the run another one");
}

// The last attempt has almost no time, so it learns nothing about the other end.
TEST(ListenerInTime, TheLastAttemptLeavesTheReasonOfThoseBefore) {
  Socket port = Socket::Listen({"127.0.0.1", 0});
  std::string why = "the reason";
  const auto past = Socket::Clock::now() - std::chrono::seconds(1);
  EXPECT_FALSE(Socket::TryConnect({"127.0.0.1", port.port()}, past, &why));
  EXPECT_EQ(why, "the reason");
  why.clear();
  EXPECT_FALSE(Socket::TryConnect({"127.0.0.1", port.port()}, past, &why));
  EXPECT_EQ(why, "Connection timed out");
}

TEST(ListenerInTime, StrangersPushNobodyOut) {
  Socket port = Socket::Listen({"127.0.0.1", 0});
  std::string why;
  auto rank = Socket::TryConnect({"127.0.0.1", port.port()}, InAMinute(), &why);
  ASSERT_TRUE(rank) << why;
  MessageStream stream(std::move(*rank));
  Listener listener(&port, kSecret, 2);
  std::vector<Socket> unknown;
  for (int count = 0; count < 300; ++count) {
    unknown.push_back(ConnectFrom("127.0.0.2", port.port()));
    listener.Poll({}, [](const distributed::Hello&, IncomingConnection*) {});
  }
  auto greeting = std::async(std::launch::async, [&] {
    EXPECT_NO_THROW(Authenticate(&stream, kSecret, {}, InAMinute(), InAMinute(), [] {}));
  });
  EXPECT_TRUE(Serve(&listener, greeting));
}

}  // namespace
}  // namespace caffe
