#include "caffe/io/hdf5_messages.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace caffe {
namespace {

struct Header {
  uint64_t bytes;
  uint64_t kind;
};

bool SendAll(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return true;
}

bool ReceiveAll(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t received = recv(socket, bytes.data(), bytes.size(), MSG_WAITALL);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(received));
  }
  return true;
}

}  // namespace

bool SendMessage(int socket, uint8_t kind, std::span<const std::byte> body) {
  const Header header{.bytes = body.size(), .kind = kind};
  return SendAll(socket, std::as_bytes(std::span(&header, 1))) && SendAll(socket, body);
}

bool ReceiveMessage(int socket, Hdf5Message* message) {
  Header header;
  if (!ReceiveAll(socket, std::as_writable_bytes(std::span(&header, 1)))) return false;
  message->kind = static_cast<uint8_t>(header.kind);
  message->body.resize(header.bytes);
  return ReceiveAll(socket, std::as_writable_bytes(std::span(message->body)));
}

}  // namespace caffe
