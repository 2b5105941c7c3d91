#include "caffe/distributed/message_stream.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace caffe {
namespace {

constexpr size_t kPrefix = 4;
// Maximum size of a message from an authenticated rank.
constexpr size_t kMostBytes = size_t{16} << 20;

size_t LengthIn(const std::string& bytes) {
  size_t length = 0;
  for (size_t i = kPrefix; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

}  // namespace

void MessageStream::Trust() {
  most_bytes_ = kMostBytes;
}

void MessageStream::Send(const google::protobuf::MessageLite& message) {
  const std::string text = message.SerializeAsString();
  CAFFE_ASSERT(text.size() <= kMostBytes, text.size());
  for (size_t i = 0; i < kPrefix; ++i) unsent_ += static_cast<char>(text.size() >> 8 * i);
  unsent_ += text;
  Flush();
}

void MessageStream::Flush() {
  while (!unsent_.empty()) {
    const size_t sent = socket_.Send(unsent_);
    if (sent == 0) return;
    unsent_.erase(0, sent);
  }
}

bool MessageStream::Receive(google::protobuf::MessageLite* message) {
  while (true) {
    // No more than this message: what follows it may be of another kind.
    size_t wanted = kPrefix;
    if (received_.size() >= kPrefix) {
      wanted += LengthIn(received_);
      if (wanted > kPrefix + most_bytes_) throw IoError("what came is not a message of a rank");
      if (received_.size() == wanted) break;
    }
    std::array<char, 4096> bytes;
    const size_t room = std::min(bytes.size(), wanted - received_.size());
    const size_t count = socket_.Receive({bytes.data(), room});
    if (count == 0) return false;
    received_.append(bytes.data(), count);
  }
  const bool is_whole = message->ParseFromString(received_.substr(kPrefix));
  received_.clear();
  if (!is_whole) throw IoError("what came is not a message of a rank");
  return true;
}

bool MessageStream::Await(google::protobuf::MessageLite* message,
                          Socket::Clock::time_point deadline, const std::function<void()>& check) {
  while (!Receive(message)) {
    check();
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Socket::Clock::now()).count();
    if (left <= 0) return false;
    Flush();
    pollfd waiting{socket_.descriptor(),
                   static_cast<short>(has_unsent() ? POLLIN | POLLOUT : POLLIN), 0};
    ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
  }
  return true;
}

Socket MessageStream::Release() {
  CAFFE_ASSERT(unsent_.empty() && received_.empty(), "a message is under way");
  return std::move(socket_);
}

}  // namespace caffe
