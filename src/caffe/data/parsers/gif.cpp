// Format specification: https://www.w3.org/Graphics/GIF/spec-gif89a.txt
#include "caffe/data/parsers/gif.hpp"

#include <algorithm>
#include <array>

#include "caffe/decode_limit.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

[[noreturn]] void Fail(const char* reason) {
  throw IoError(StrCat("broken GIF image: ", reason));
}

class GifBytes {
 public:
  explicit GifBytes(std::string_view file) : rest_(file) {}

  std::string_view Take(size_t count) {
    if (count > rest_.size()) Fail("the file ends too early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  int Byte() { return static_cast<uint8_t>(Take(1)[0]); }
  int Word() {
    const int low = Byte();
    return low | Byte() << 8;
  }
  // Reads one block of a chain that an empty block ends.
  std::string_view Block() { return Take(Byte()); }

 private:
  std::string_view rest_;
};

// Red, green, blue for each index.
using ColorTable = std::array<uint8_t, 3 * 256>;

// Indices beyond the table are black.
ColorTable ReadColors(int count, GifBytes* bytes) {
  ColorTable colors{};
  const std::string_view stored = bytes->Take(3 * static_cast<size_t>(count));
  std::copy(stored.begin(), stored.end(), colors.begin());
  return colors;
}

ColorTable GrayColors() {
  ColorTable colors;
  for (size_t i = 0; i < colors.size(); ++i) colors[i] = static_cast<uint8_t>(i / 3);
  return colors;
}

// Reads the codes of a frame's pixels: bits from the lowest, across byte and block boundaries.
class CodeReader {
 public:
  explicit CodeReader(GifBytes* bytes) : bytes_(bytes) {}

  int Next(int bits) {
    for (; held_ < bits; held_ += 8) buffer_ |= static_cast<uint32_t>(NextByte()) << held_;
    const int code = static_cast<int>(buffer_ & ((1u << bits) - 1));
    buffer_ >>= bits;
    held_ -= bits;
    return code;
  }

 private:
  uint8_t NextByte() {
    if (block_.empty()) block_ = bytes_->Block();
    if (block_.empty()) Fail("it ends before its last pixel");
    const auto byte = static_cast<uint8_t>(block_[0]);
    block_.remove_prefix(1);
    return byte;
  }

  GifBytes* const bytes_;
  std::string_view block_;
  uint32_t buffer_ = 0;
  int held_ = 0;
};

// LZW: each code is a sequence of indices, that of an earlier code plus one index.
class LzwDecoder {
 public:
  explicit LzwDecoder(GifBytes* bytes) : literal_bits_(bytes->Byte()), codes_(bytes) {
    if (literal_bits_ < 2 || literal_bits_ > 8) Fail("its codes have a wrong size");
    for (int code = 0; code < clear_; ++code) {
      first_[code] = last_[code] = static_cast<uint8_t>(code);
      lengths_[code] = 1;
    }
  }

  void Decode(std::vector<uint8_t>* indices) {
    constexpr int kNone = -1;
    size_t at = 0;
    int next = clear_ + 2, bits = literal_bits_ + 1, before = kNone;
    while (at < indices->size()) {
      const int code = codes_.Next(bits);
      if (code == clear_) {
        next = clear_ + 2;
        bits = literal_bits_ + 1;
        before = kNone;
        continue;
      }
      if (code == clear_ + 1) Fail("it ends before its last pixel");
      const bool is_known = code < clear_ || (code > clear_ && code < next);
      const bool is_new = code == next && next < kCodes && before != kNone;
      if (!is_known && !is_new) Fail("it has a code without a meaning");
      if (before != kNone && next < kCodes) {
        before_[next] = static_cast<uint16_t>(before);
        first_[next] = first_[before];
        last_[next] = is_new ? first_[before] : first_[code];
        lengths_[next] = static_cast<uint16_t>(lengths_[before] + 1);
        ++next;
        if (next == 1 << bits && bits < kMostBits) ++bits;
      }
      at = Write(code, at, indices);
      before = code;
    }
  }

 private:
  static constexpr int kMostBits = 12;
  static constexpr int kCodes = 1 << kMostBits;

  // Writes backwards; returns the position after the code's indices.
  size_t Write(int code, size_t at, std::vector<uint8_t>* indices) const {
    const size_t end = at + lengths_[code];
    for (size_t i = end; i > at; --i, code = before_[code]) {
      if (i <= indices->size()) (*indices)[i - 1] = last_[code];
    }
    return end;
  }

  const int literal_bits_;
  const int clear_ = 1 << literal_bits_;
  CodeReader codes_;
  std::array<uint16_t, kCodes> before_{}, lengths_{};
  std::array<uint8_t, kCodes> first_{}, last_{};
};

// Interlaced rows are stored in four passes: every eighth row, those halfway between, and so on.
std::vector<int> RowsInOrder(int height, bool is_interlaced) {
  std::vector<int> rows;
  const auto add = [&](int first, int step) {
    for (int row = first; row < height; row += step) rows.push_back(row);
  };
  if (!is_interlaced) {
    add(0, 1);
    return rows;
  }
  add(0, 8);
  add(4, 8);
  add(2, 4);
  add(1, 2);
  return rows;
}

constexpr int kHasTable = 0x80, kIsInterlaced = 0x40, kTableBits = 0x07;

int TableSize(int flags) {
  return 2 << (flags & kTableBits);
}

// Skips everything before the first frame. Returns the index of its transparent pixels, or 0.
int FindFrame(GifBytes* bytes) {
  constexpr int kExtension = 0x21, kFrame = 0x2c, kGraphicControl = 0xf9;
  int transparent = 0;
  for (int kind = bytes->Byte(); kind != kFrame; kind = bytes->Byte()) {
    if (kind != kExtension) Fail("it has no frame");
    const bool is_control = bytes->Byte() == kGraphicControl;
    for (std::string_view block = bytes->Block(); !block.empty(); block = bytes->Block()) {
      const bool has_transparent = is_control && block.size() >= 4 && (block[0] & 1) != 0;
      if (has_transparent) transparent = static_cast<uint8_t>(block[3]);
    }
  }
  return transparent;
}

}  // namespace

bool IsGif(std::string_view file) {
  return file.starts_with("GIF8");
}

ImageExtents DecodeGif(std::string_view file, std::vector<uint8_t>* pixels) {
  GifBytes bytes(file);
  bytes.Take(6);  // the signature
  int width = bytes.Word(), height = bytes.Word();
  const int flags = bytes.Byte();
  bytes.Take(2);  // background and aspect
  ColorTable colors = flags & kHasTable ? ReadColors(TableSize(flags), &bytes) : GrayColors();
  const int around = FindFrame(&bytes);
  const int left = bytes.Word(), top = bytes.Word();
  const int frame_width = bytes.Word(), frame_height = bytes.Word();
  const int frame_flags = bytes.Byte();
  if (frame_flags & kHasTable) colors = ReadColors(TableSize(frame_flags), &bytes);
  if (frame_width == 0 || frame_height == 0) Fail("it has no pixels");
  width = std::max(width, left + frame_width);
  height = std::max(height, top + frame_height);

  const size_t area = static_cast<size_t>(width) * height;
  const size_t frame_area = static_cast<size_t>(frame_width) * frame_height;
  CheckDecodedBytes(3 * area + frame_area, file.size(), "an image of ", width, "x", height);
  std::vector<uint8_t> indices(frame_area);
  LzwDecoder(&bytes).Decode(&indices);

  pixels->resize(3 * area);
  const auto paint = [&](size_t place, int index) {
    for (int c = 0; c < 3; ++c) (*pixels)[3 * place + c] = colors[3 * index + 2 - c];
  };
  for (size_t place = 0; place < area; ++place) paint(place, around);
  const uint8_t* index = indices.data();
  for (const int row : RowsInOrder(frame_height, frame_flags & kIsInterlaced)) {
    const size_t begin = static_cast<size_t>(top + row) * width + left;
    for (int column = 0; column < frame_width; ++column) paint(begin + column, *index++);
  }
  return {3, height, width};
}

}  // namespace caffe::data
