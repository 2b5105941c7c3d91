// Counter-based random numbers: Philox 4x32-10 (Salmon et al. 2011, "Parallel random
// numbers: as easy as 1, 2, 3"). A number is a function of (seed, stream, index) alone, so
// it is the same on every device, for any thread count, and after a resume.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace caffe {

// One 128-bit block: `counter` encrypted under `key`.
constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// FNV-1a, to turn a name ("conv1", "data/shuffle") into a stream number.
constexpr uint64_t StreamOf(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

// A random-access sequence: number i of stream `stream` under `seed`.
class RandomStream {
 public:
  constexpr RandomStream(uint64_t seed, uint64_t stream)
      : key_{static_cast<uint32_t>(seed) ^ static_cast<uint32_t>(stream >> 32),
             static_cast<uint32_t>(seed >> 32)},
        stream_(static_cast<uint32_t>(stream)) {}

  // Four independent 32-bit numbers for block `block` of iteration `iteration`, both below 2^32.
  // Blocks of different iterations never overlap.
  constexpr std::array<uint32_t, 4> Block(uint64_t block, uint64_t iteration = 0) const {
    return Philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32) ^ stream_,
                       static_cast<uint32_t>(iteration), static_cast<uint32_t>(iteration >> 32)},
                      key_);
  }

  constexpr uint32_t Bits(uint64_t index, uint64_t iteration = 0) const {
    return Block(index / 4, iteration)[index % 4];
  }

 private:
  std::array<uint32_t, 2> key_;
  uint32_t stream_;
};

// Uniform in [0, 1), with 24 random bits.
constexpr float ToUniform(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// Integer in [0, range). The bias is negligible for fewer than 2^32 / range draws.
constexpr uint32_t ToRange(uint32_t bits, uint32_t range) {
  return static_cast<uint32_t>((uint64_t{bits} * range) >> 32);
}

// Two standard normal numbers from two uniforms (Box and Muller 1958).
inline std::array<float, 2> ToNormal(uint32_t bits0, uint32_t bits1) {
  const float radius = std::sqrt(-2.0f * std::log(1.0f - ToUniform(bits0)));
  const float angle = 6.2831853f * ToUniform(bits1);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace caffe
