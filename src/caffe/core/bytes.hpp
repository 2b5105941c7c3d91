// ByteWriter, ByteReader: numbers and texts as bytes, and back. Little-endian, as are all supported
// processors.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "caffe/error.hpp"

namespace caffe {

static_assert(std::endian::native == std::endian::little);

class ByteWriter {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T>
  void Number(T value) { Append(&value, sizeof(value)); }
  void Text(const std::string& text) {
    Number(static_cast<uint32_t>(text.size()));
    Append(text.data(), text.size());
  }
  void Append(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  const std::string& bytes() const { return bytes_; }
  std::string Take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads from `bytes`, which must outlive the reader. Throws InvalidArgument if they end too early
// or hold a value that is invalid for its type. A corrupt count cannot make it allocate more memory
// than the bytes themselves take.
class ByteReader {
 public:
  explicit ByteReader(std::span<const char> bytes) : bytes_(bytes) {}

  template <typename T>
  requires std::is_arithmetic_v<T> T Number() {
    if constexpr (std::same_as<T, bool>) {
      const auto value = Number<uint8_t>();
      Require(value <= 1, "byte ", at_ - 1, " is ", int{value}, "; it must be 0 or 1");
      return value != 0;
    } else {
      T value;
      std::memcpy(&value, Take(sizeof(T)).data(), sizeof(T));
      return value;
    }
  }
  std::string Text() {
    const std::span<const char> text = Take(Number<uint32_t>());
    return {text.begin(), text.end()};
  }
  // Reads the number of items that follow; each takes at least `least_bytes`.
  size_t Count(size_t least_bytes) {
    const auto count = Number<uint32_t>();
    Require(count <= left() / least_bytes, "byte ", at_ - sizeof(count), " says that ", count,
            " items follow, but only ", left(), " bytes do");
    return count;
  }
  std::span<const char> Take(size_t size) {
    Require(size <= left(), "it ends at byte ", bytes_.size(), ", where ", size,
            " bytes should follow byte ", at_);
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }
  size_t position() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }

 private:
  std::span<const char> bytes_;
  size_t at_ = 0;
};

}  // namespace caffe
