// Reads an HDF5 file in this process. A damaged file may crash it, so only caffe_hdf5_reader uses
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "caffe/io/hdf5_handle.hpp"
#include "caffe/shape.hpp"

namespace caffe {

// Implements the questions of Hdf5Reader, with its errors.
class Hdf5Contents {
 public:
  explicit Hdf5Contents(const std::string& path);

  bool Contains(const std::string& name) const;
  bool IsGroup(const std::string& name) const;
  std::vector<std::string> LinksOf(const std::string& name) const;
  Shape ShapeOf(const std::string& name) const;
  std::string ReadString(const std::string& name);

  // Passes the total number of values to `start`, then the values to `take`, some rows at a time. T
  // is float, double or int64_t.
  template <typename T>
  void Read(const std::string& name, const std::function<void(uint64_t)>& start,
            const std::function<void(std::span<const T>)>& take);

 private:
  Hdf5Handle OpenDataset(const std::string& name) const;
  Shape ShapeOf(const Hdf5Handle& dataset, const std::string& name) const;
  void RequireNumbers(const Hdf5Handle& dataset, const std::string& name) const;
  void Take(uint64_t bytes, const std::string& name);

  const std::string path_;
  const Hdf5Handle file_;
  const uint64_t file_bytes_;
  uint64_t taken_ = 0;  // bytes allocated by all reads so far
};

}  // namespace caffe
