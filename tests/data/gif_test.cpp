// GIF images, written here: codes, rows and colours.
#include "caffe/data/parsers/gif.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"

namespace caffe::data {
namespace {

using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;

std::string Word(int value) {
  return {static_cast<char>(value & 0xff), static_cast<char>(value >> 8)};
}

// A table of 2^bits colours: index i is red i, green i + 1, blue i + 2.
std::string Colors(int bits) {
  std::string colors;
  for (int i = 0; i < 1 << bits; ++i) {
    for (int c = 0; c < 3; ++c) colors += static_cast<char>(i + c);
  }
  return colors;
}

// Writes bits, the lowest first, in blocks of at most 255 bytes.
class CodeWriter {
 public:
  void Put(int code, int bits) {
    buffer_ |= static_cast<uint32_t>(code) << held_;
    for (held_ += bits; held_ >= 8; held_ -= 8, buffer_ >>= 8) bytes_ += static_cast<char>(buffer_);
  }
  std::string Blocks() {
    if (held_ > 0) bytes_ += static_cast<char>(buffer_);
    std::string blocks;
    for (size_t at = 0; at < bytes_.size(); at += 255) {
      const std::string block = bytes_.substr(at, 255);
      blocks += static_cast<char>(block.size()) + block;
    }
    return blocks + '\0';
  }

 private:
  std::string bytes_;
  uint32_t buffer_ = 0;
  int held_ = 0;
};

// GIF's LZW compression. A full table is kept for `patience` further codes, then cleared.
std::string Compressed(const std::string& indices, int literal_bits, int patience = 0) {
  const int clear = 1 << literal_bits;
  CodeWriter writer;
  std::map<std::string, int> codes;
  int bits = 0, next = 0, waited = 0;
  const auto restart = [&] {
    if (bits > 0) writer.Put(clear, bits);
    codes.clear();
    for (int i = 0; i < clear; ++i) codes[std::string(1, static_cast<char>(i))] = i;
    next = clear + 2;
    bits = literal_bits + 1;
    waited = 0;
  };
  restart();
  writer.Put(clear, bits);
  std::string row;
  for (const char index : indices) {
    if (codes.count(row + index) > 0) {
      row += index;
      continue;
    }
    writer.Put(codes[row], bits);
    if (next < 4096) {
      codes[row + index] = next++;
      if (next > 1 << bits && bits < 12) ++bits;
    } else if (waited++ == patience) {
      restart();
    }
    row = index;
  }
  writer.Put(codes[row], bits);
  writer.Put(clear + 1, bits);
  return static_cast<char>(literal_bits) + writer.Blocks();
}

struct Frame {
  int width, height;
  std::string data;
  int left = 0, top = 0;
  int flags = 0;
};

std::string Gif(int width, int height, const Frame& frame, int table_bits = 8,
                const std::string& extension = "") {
  return "GIF89a" + Word(width) + Word(height) + static_cast<char>(0x80 | (table_bits - 1)) +
         std::string(2, '\0') + Colors(table_bits) + extension + ',' + Word(frame.left) +
         Word(frame.top) + Word(frame.width) + Word(frame.height) + static_cast<char>(frame.flags) +
         frame.data + ';';
}

std::vector<uint8_t> Pixels(const std::string& file) {
  std::vector<uint8_t> pixels;
  DecodeGif(file, &pixels);
  return pixels;
}

// The red values, which equal the indices.
std::string Indices(const std::string& file) {
  const std::vector<uint8_t> pixels = Pixels(file);
  std::string indices;
  for (size_t i = 2; i < pixels.size(); i += 3) indices += static_cast<char>(pixels[i]);
  return indices;
}

std::string Noise(size_t count, int bits) {
  std::string indices;
  uint32_t state = 7;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    indices += static_cast<char>(state >> 24 & ((1u << bits) - 1));
  }
  return indices;
}

TEST(GifTest, PixelsAreBlueGreenRed) {
  const Image image =
      DecodeImage(Gif(2, 1, {2, 1, Compressed("\3\1", 2)}, 2), ColorMode::kAsStored);
  EXPECT_EQ(image.extents, (ImageExtents{3, 1, 2}));
  EXPECT_THAT(image.pixels, ElementsAre(5, 4, 3, 3, 2, 1));
  const Image gray = DecodeImage(Gif(2, 1, {2, 1, Compressed("\3\1", 2)}, 2), ColorMode::kGray);
  EXPECT_EQ(gray.extents, (ImageExtents{1, 1, 2}));
  EXPECT_THAT(gray.pixels, ElementsAre(4, 2));
}

TEST(GifTest, CodesGrowAndStartAgain) {
  for (const int bits : {2, 5, 8}) {
    for (const int patience : {0, 500, 100'000}) {
      const std::string indices = Noise(300 * 200, bits);
      const Frame frame{300, 200, Compressed(indices, bits, patience)};
      EXPECT_EQ(Indices(Gif(300, 200, frame, bits)), indices) << bits << " " << patience;
    }
  }
  const std::string plain(300 * 200, '\5');  // each code begins with the previous one
  EXPECT_EQ(Indices(Gif(300, 200, {300, 200, Compressed(plain, 3)}, 3)), plain);
}

TEST(GifTest, RowsMayBeInterlaced) {
  const std::string stored("\0\5\3\6\1\2\4\7", 8);  // pixels of rows 0 4 2 6 1 3 5 7
  Frame frame{1, 8, Compressed(stored, 3)};
  frame.flags = 0x40;
  EXPECT_EQ(Indices(Gif(1, 8, frame, 3)), std::string("\0\1\3\2\5\4\6\7", 8));
}

TEST(GifTest, AFrameMayBePartOfTheImage) {
  Frame frame{1, 1, Compressed("\3", 2)};
  frame.left = 1;
  EXPECT_EQ(Indices(Gif(2, 2, frame, 2)), std::string("\0\3\0\0", 4));
  const std::string transparent = std::string("!\xf9\4\1\0\0\2\0", 8);
  EXPECT_EQ(Indices(Gif(2, 2, frame, 2, transparent)), "\2\3\2\2");
  frame.top = 2;  // beyond the canvas, which grows
  EXPECT_EQ(Indices(Gif(2, 2, frame, 2)), std::string("\0\0\0\0\0\3", 6));
}

TEST(GifTest, AFramesOwnColorsComeFirst) {
  Frame frame{2, 1, std::string("\1\1\1\2\2\2", 6) + Compressed(std::string("\1\0", 2), 2)};
  frame.flags = 0x80;
  EXPECT_THAT(Pixels(Gif(2, 1, frame, 4)), ElementsAre(2, 2, 2, 1, 1, 1));
}

TEST(GifTest, BrokenFilesAreErrors) {
  const auto error = [](const std::string& file) {
    return ErrorText<IoError>([&] { Pixels(file); });
  };
  const std::string whole = Gif(20, 10, {20, 10, Compressed(Noise(200, 4), 4)}, 4);
  for (size_t size = 6; size + 3 < whole.size(); ++size) {
    EXPECT_THAT(error(whole.substr(0, size)), HasSubstr("broken GIF image")) << size;
  }
  EXPECT_THAT(error(Gif(2, 2, {2, 2, Compressed("\1", 2)}, 2)),
              HasSubstr("it ends before its last pixel"));
  EXPECT_THAT(error(Gif(2, 2, {2, 2, std::string("\2\2\x3c\1\0", 5)}, 2)),
              HasSubstr("it has a code without a meaning"));
  EXPECT_THAT(error(Gif(2, 2, {2, 2, "\11"}, 2)), HasSubstr("its codes have a wrong size"));
  EXPECT_THAT(error(Gif(2, 2, {0, 2, "\2"}, 2)), HasSubstr("it has no pixels"));
  EXPECT_THAT(error(Gif(65535, 65535, {65535, 65535, "\2"}, 2)), HasSubstr("an image of 65535"));
}

}  // namespace
}  // namespace caffe::data
