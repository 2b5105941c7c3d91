#include "tests/support/npz.hpp"

#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace caffe::testing {
namespace {

template <typename T>
T ReadAt(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <typename T>
std::vector<float> Convert(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(ReadAt<T>(bytes, i * sizeof(T)));
  }
  return values;
}

// The header is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
NpyArray ParseNpy(const std::string& npy, const std::string& where) {
  if (npy.compare(0, 6, "\x93NUMPY") != 0) throw std::runtime_error(where + ": not an npy member");
  const size_t length = ReadAt<uint16_t>(npy, 8);
  const std::string header = npy.substr(10, length);
  NpyArray array;
  const size_t descr = header.find("'descr': '") + 10;
  array.kind = header[descr + 1];
  array.item_size = std::stoi(header.substr(descr + 2));
  const size_t open = header.find('(');
  std::istringstream dims(header.substr(open + 1, header.find(')') - open - 1));
  for (std::string dim; std::getline(dims, dim, ',');) {
    if (dim.find_first_not_of(' ') != std::string::npos) array.shape.push_back(std::stoll(dim));
  }
  array.bytes = npy.substr(10 + length);
  return array;
}

}  // namespace

int64_t NpyArray::count() const {
  int64_t total = 1;
  for (const int64_t extent : shape) total *= extent;
  return total;
}

std::vector<float> NpyArray::floats() const {
  switch (kind) {
    case 'f':
      return item_size == 8 ? Convert<double>(bytes) : Convert<float>(bytes);
    case 'i':
      return item_size == 8   ? Convert<int64_t>(bytes)
             : item_size == 4 ? Convert<int32_t>(bytes)
                              : Convert<int8_t>(bytes);
    case 'u':
      return item_size == 8   ? Convert<uint64_t>(bytes)
             : item_size == 4 ? Convert<uint32_t>(bytes)
                              : Convert<uint8_t>(bytes);
    default:
      throw std::runtime_error(std::string("npy kind '") + kind + "' is not a number");
  }
}

std::string NpyArray::text() const {
  return bytes.substr(0, bytes.find_last_not_of('\0') + 1);
}

Npz Npz::Load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot open");
  const std::string zip((std::istreambuf_iterator<char>(file)), {});
  Npz npz;
  constexpr uint32_t kLocalHeader = 0x04034b50;
  for (size_t at = 0; at + 30 <= zip.size() && ReadAt<uint32_t>(zip, at) == kLocalHeader;) {
    const size_t size = ReadAt<uint32_t>(zip, at + 18);
    const size_t name_length = ReadAt<uint16_t>(zip, at + 26),
                 extra = ReadAt<uint16_t>(zip, at + 28);
    std::string name = zip.substr(at + 30, name_length);
    const size_t begin = at + 30 + name_length + extra;
    name.resize(name.size() - 4);  // ".npy"
    npz.arrays_[name] = ParseNpy(zip.substr(begin, size), path + ": " + name);
    at = begin + size;
  }
  return npz;
}

const NpyArray& Npz::at(const std::string& key) const {
  const auto found = arrays_.find(key);
  if (found == arrays_.end()) throw std::runtime_error("npz has no member '" + key + "'");
  return found->second;
}

std::vector<std::string> Npz::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays_) names.push_back(name);
  return names;
}

}  // namespace caffe::testing
