#include "caffe/core/printable.hpp"

#include <algorithm>
#include <cstdint>

namespace caffe {
namespace {

bool IsControl(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
         (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

// Length in bytes of the control character at the start of `text`; 0 if there is none. Every
// control character takes at most three bytes of UTF-8.
size_t ControlBytes(std::string_view text) {
  const auto byte = [&](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto low_bits = [&](size_t i) { return byte(i) & 0x3f; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  if (byte(0) < 0x80) return IsControl(byte(0)) ? 1 : 0;
  if ((byte(0) & 0xe0) == 0xc0 && follows(1)) {
    return IsControl((byte(0) & 0x1f) << 6 | low_bits(1)) ? 2 : 0;
  }
  if ((byte(0) & 0xf0) == 0xe0 && follows(1) && follows(2)) {
    return IsControl((byte(0) & 0x0f) << 12 | low_bits(1) << 6 | low_bits(2)) ? 3 : 0;
  }
  // A terminal that does not decode UTF-8 takes a single such byte for a control character.
  return byte(0) < 0xa0 ? 1 : 0;
}

// Length in bytes of the letter at the start of `text`.
size_t LetterBytes(std::string_view text) {
  size_t bytes = 1;
  const bool leads = (static_cast<unsigned char>(text[0]) & 0xc0) == 0xc0;
  while (leads && bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) {
    ++bytes;
  }
  return bytes;
}

// Length in bytes of the UTF-8 character at the start of `text`; 0 if it is invalid.
size_t Utf8Bytes(std::string_view text) {
  // The least codes of two, three and four bytes; smaller codes must use a shorter form.
  constexpr uint32_t kLeast[] = {0x80, 0x800, 0x10000};
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc0 || first >= 0xf8 || text.size() < bytes) return 0;
  uint32_t code = first & (0x7f >> bytes);
  for (const char letter : text.substr(1, bytes - 1)) {
    const auto byte = static_cast<unsigned char>(letter);
    if ((byte & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3f);
  }
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[bytes - 2] || code > 0x10ffff || is_surrogate ? 0 : bytes;
}

constexpr char kDigits[] = "0123456789abcdef";

std::string Escaped(std::string_view text, std::string_view kept) {
  std::string printable;
  while (!text.empty()) {
    const size_t control = kept.find(text[0]) == kept.npos ? ControlBytes(text) : 0;
    const size_t bytes = control > 0 ? control : LetterBytes(text);
    for (const char letter : text.substr(0, bytes)) {
      const auto byte = static_cast<unsigned char>(letter);
      if (control > 0) {
        printable += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
      } else {
        printable += letter;
      }
    }
    text.remove_prefix(bytes);
  }
  return printable;
}

}  // namespace

bool HasControlCharacters(std::string_view text) {
  while (!text.empty()) {
    if (ControlBytes(text) > 0) return true;
    text.remove_prefix(LetterBytes(text));
  }
  return false;
}

std::string Printable(std::string_view text) {
  constexpr size_t kLongest = 200;
  const std::string printable = Escaped(text.substr(0, kLongest), "");
  return text.size() > kLongest ? printable + "..." : printable;
}

std::string PrintableLines(std::string_view text) {
  return Escaped(text, "\n\t");
}

std::string Utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t bytes = Utf8Bytes(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    bytes > 0 ? valid += text.substr(0, bytes)
              : valid += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return valid;
}

}  // namespace caffe
