#include "caffe/core/printable.hpp"

namespace caffe {

std::string Printable(std::string_view text) {
  constexpr size_t kLongest = 200;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string printable;
  for (const char letter : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x20 && byte != 0x7f) {
      printable += letter;
    } else {
      printable += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return text.size() > kLongest ? printable + "..." : printable;
}

}  // namespace caffe
