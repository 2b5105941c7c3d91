// Hashes that tell contents apart; not safe against deliberate collisions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace caffe {

// 64-bit FNV-1a. `begin`: the hash of the preceding bytes.
inline uint64_t Hash64(std::string_view bytes, uint64_t begin = 14695981039346656037u) {
  uint64_t hash = begin;
  for (const char one : bytes) hash = (hash ^ static_cast<unsigned char>(one)) * 1099511628211u;
  return hash;
}

// Hashes eight bytes at a time, at some GB/s. The hash depends on how bytes are split into calls of
// Add().
class WordHash {
 public:
  void Add(std::string_view bytes) {
    AddWord(bytes.size());
    for (; bytes.size() >= sizeof(uint64_t); bytes.remove_prefix(sizeof(uint64_t))) {
      uint64_t word;
      std::memcpy(&word, bytes.data(), sizeof(word));
      AddWord(word);
    }
    uint64_t rest = 0;
    if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
    AddWord(rest);
  }
  void AddWord(uint64_t word) {
    // Each step is invertible, so two states that differ stay different.
    hash_ = std::rotl((hash_ ^ word) * 0x9e3779b97f4a7c15u, 29);
  }
  uint64_t value() const { return hash_ ^ (hash_ >> 32); }

 private:
  uint64_t hash_ = 14695981039346656037u;
};

}  // namespace caffe
