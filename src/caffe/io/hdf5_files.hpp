// HDF5 files: numeric datasets in groups, for weights, solver states and HDF5Data sources.
//
// A build without HDF5 has these classes too; opening a file then throws Unsupported.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "caffe/io/content_mark.hpp"
#include "caffe/shape.hpp"

namespace caffe {

// Reads one file. Paths in it are written "/data/conv1/0", or without the first slash. Errors are
// IoError and name file and path. Thread-safe.
//
// The HDF5 library crashes on some damaged files, and loops forever on others. So each reader uses
// a process, caffe_hdf5_reader, in which the library runs; if it ends, the error says "damaged".
class Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::string& path);
  ~Hdf5Reader();
  Hdf5Reader(const Hdf5Reader&) = delete;
  Hdf5Reader& operator=(const Hdf5Reader&) = delete;

  // True if a group or dataset of this name exists.
  bool Contains(const std::string& name) const;
  // True if `name` exists and is a group.
  bool IsGroup(const std::string& name) const;

  // Names of the groups and datasets directly inside `group`: numbers first and in numeric order
  // ("2" before "10"), then the rest alphabetically.
  std::vector<std::string> LinksOf(const std::string& group) const;

  Shape ShapeOf(const std::string& dataset) const;

  // All values in row-major order, converted from any numeric type.
  std::vector<float> ReadFloats(const std::string& dataset) const;
  std::vector<double> ReadDoubles(const std::string& dataset) const;

  // A dataset of exactly one integer, or one string.
  int64_t ReadInteger(const std::string& dataset) const;
  std::string ReadString(const std::string& dataset) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Writes one file, which appears under its name on Commit(), completely or not at all. Groups in a
// dataset's path are created as needed, so names may contain slashes. Thread-safe; calls are
// serialised, because most builds of the HDF5 library are not thread-safe.
class Hdf5Writer {
 public:
  // Files with the same contents are bitwise equal: they contain no timestamps.
  explicit Hdf5Writer(const std::string& path);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  // Does nothing if the group exists.
  void CreateGroup(const std::string& name);

  // The number of values must equal the shape's count (InvalidArgument).
  void WriteFloats(const std::string& dataset, const Shape& shape, std::span<const float> values);
  void WriteDoubles(const std::string& dataset, const Shape& shape, std::span<const double> values);

  void WriteInteger(const std::string& dataset, int64_t value);
  void WriteString(const std::string& dataset, const std::string& value);

  // Closes the file and makes its bytes durable under its temporary name; nothing can be written
  // afterwards. For a set of files, call it on all before the first Commit().
  void MakeDurable();
  // The mark of all its bytes; only between MakeDurable() and Commit().
  ContentMark mark() const;
  void Commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caffe
