#include "caffe/distributed/socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace caffe {
namespace {

// For one address of a name.
constexpr std::chrono::seconds kPatience{3};

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// Null, with the reason, if the name cannot be resolved.
AddressList Resolve(const Address& address, bool is_own, std::string* why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (is_own ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const char* const host = address.host.empty() ? nullptr : address.host.c_str();
  const int error = ::getaddrinfo(host, std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    *why = StrCat("host '", address.host, "' has no address: ", ::gai_strerror(error));
    found = nullptr;
  }
  return {found, &::freeaddrinfo};
}

std::string ErrorText(int error) {
  return std::generic_category().message(error);
}

void SetOption(int descriptor, int level, int option, int value) {
  // Failure is harmless: without an option, a lost connection is noticed later.
  ::setsockopt(descriptor, level, option, &value, sizeof value);
}

bool WouldBlock(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

struct SocketName {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }

  bool operator==(const SocketName& other) const {
    return size == other.size && std::memcmp(&storage, &other.storage, size) == 0;
  }
};

// A connection to a local port without a listener can be assigned that port as its own source, and
// then connects to itself.
bool MeetsItself(int descriptor) {
  SocketName own, other;
  return ::getsockname(descriptor, own.get(), &own.size) == 0 &&
         ::getpeername(descriptor, other.get(), &other.size) == 0 && own == other;
}

void ThrowIfExhausted(int error) {
  if (error != EMFILE && error != ENFILE) return;
  throw DeviceError(StrCat("no descriptors are left (", ErrorText(error),
                           "); raise their number (ulimit -n) for runs of many ranks"));
}

// 0 once the connection is established, else why it is not.
int AwaitConnection(int descriptor, Socket::Clock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Socket::Clock::now()).count();
    if (left <= 0) return ETIMEDOUT;
    pollfd waiting{descriptor, POLLOUT, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
    if (ready < 0 && errno != EINTR) return errno;
    if (ready > 0) break;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 && MeetsItself(descriptor) ? ECONNREFUSED : error;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket::~Socket() {
  if (is_open()) ::close(descriptor_);
}

// Sets the options of a connection.
void Socket::Prepare() const {
  SetOption(descriptor_, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(descriptor_, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(descriptor_, IPPROTO_TCP, TCP_KEEPIDLE, 5);
  SetOption(descriptor_, IPPROTO_TCP, TCP_KEEPINTVL, 3);
  SetOption(descriptor_, IPPROTO_TCP, TCP_KEEPCNT, 3);
  SetOption(descriptor_, IPPROTO_TCP, TCP_USER_TIMEOUT,
            static_cast<int>(std::chrono::milliseconds(kSilence).count()));
}

Socket Socket::Listen(const Address& address) {
  int error = 0;
  std::string why;
  const AddressList places = Resolve(address, /*is_own=*/true, &why);
  if (places == nullptr) throw DeviceError(StrCat("cannot listen: ", why));
  for (const int family : {AF_INET6, AF_INET}) {  // a port of IPv6 takes connections of both kinds
    for (const addrinfo* place = places.get(); place != nullptr; place = place->ai_next) {
      if (place->ai_family != family) continue;
      Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (socket.is_open()) {
        SetOption(socket.descriptor_, SOL_SOCKET, SO_REUSEADDR, 1);
        if (family == AF_INET6) SetOption(socket.descriptor_, IPPROTO_IPV6, IPV6_V6ONLY, 0);
        if (::bind(socket.descriptor_, place->ai_addr, place->ai_addrlen) == 0 &&
            ::listen(socket.descriptor_, SOMAXCONN) == 0) {
          return socket;
        }
      }
      error = errno;
    }
  }
  throw DeviceError(StrCat("cannot listen on ", ToText(address), ": ", ErrorText(error),
                           error == EADDRINUSE
                               ? "; another program uses this port, give another one"
                               : "; the host must be the one of rank 0"));
}

std::optional<Socket> Socket::TryConnect(const Address& address, Clock::time_point deadline,
                                         std::string* why) {
  const AddressList places = Resolve(address, /*is_own=*/false, why);
  for (const addrinfo* place = places.get(); place != nullptr; place = place->ai_next) {
    Socket socket(::socket(place->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) {
      ThrowIfExhausted(errno);
      *why = ErrorText(errno);
      continue;
    }
    const int result = ::connect(socket.descriptor_, place->ai_addr, place->ai_addrlen);
    int error = result == 0 || errno == EINPROGRESS ? 0 : errno;
    // Another address of the name may answer where this one swallows what is sent to it.
    const Clock::time_point end = std::min(deadline, Clock::now() + kPatience);
    if (error == 0) error = AwaitConnection(socket.descriptor_, end);
    if (error != 0) {
      // An attempt that the deadline cut short says less than those before.
      const bool was_cut_short = error == ETIMEDOUT && end == deadline;
      if (why->empty() || !was_cut_short) *why = ErrorText(error);
      continue;
    }
    socket.Prepare();
    return socket;
  }
  return std::nullopt;
}

std::optional<Socket> Socket::Accept() {
  Socket socket(::accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open()) {
    ThrowIfExhausted(errno);
    return std::nullopt;  // it has gone again, or there was none
  }
  socket.Prepare();
  return socket;
}

size_t Socket::Send(std::span<const char> bytes) {
  const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (WouldBlock(errno)) return 0;
  throw ConnectionLost(ErrorText(errno));
}

size_t Socket::Receive(std::span<char> bytes) {
  if (bytes.empty()) return 0;
  const ssize_t received = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
  if (received > 0) return static_cast<size_t>(received);
  if (received == 0) throw ConnectionLost("the other end has closed the connection");
  if (WouldBlock(errno)) return 0;
  throw ConnectionLost(ErrorText(errno));
}

void Socket::EndSending() const {
  ::shutdown(descriptor_, SHUT_WR);
}

int Socket::port() const {
  SocketName own;
  if (::getsockname(descriptor_, own.get(), &own.size) != 0) return 0;
  return ntohs(own.storage.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(own.storage).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(own.storage).sin_port);
}

std::string Socket::peer_host() const {
  SocketName other;
  std::array<char, NI_MAXHOST> host{};
  if (::getpeername(descriptor_, other.get(), &other.size) != 0 ||
      ::getnameinfo(other.get(), other.size, host.data(), host.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    return "an unknown host";
  }
  const std::string text = host.data();
  constexpr char kMapped[] = "::ffff:";  // a number of IPv4 on a port of both kinds
  return text.starts_with(kMapped) && text.find('.') != std::string::npos
             ? text.substr(sizeof kMapped - 1)
             : text;
}

}  // namespace caffe
