// Reader of .npz files like those in tests/golden: uncompressed zip members, npy version 1.0.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace caffe::testing {

struct NpyArray {
  std::vector<int64_t> shape;
  char kind = 'f';    // f: float, i: signed, u: unsigned, S: bytes
  int item_size = 4;  // bytes per element
  std::string bytes;  // elements in C order, little-endian

  int64_t count() const;
  std::vector<float> floats() const;  // any numeric kind, converted
  std::string text() const;           // bytes without trailing zeros
};

class Npz {
 public:
  // Throws std::runtime_error naming the file.
  static Npz Load(const std::string& path);
  bool has(const std::string& key) const { return arrays_.count(key) > 0; }
  const NpyArray& at(const std::string& key) const;
  std::vector<std::string> keys() const;

 private:
  std::map<std::string, NpyArray> arrays_;
};

}  // namespace caffe::testing
