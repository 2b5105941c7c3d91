// HDF5 files: datasets of numbers in groups. Weights, solver state and HDF5Data sources.
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

// Reads one file. Paths inside it are written "/data/conv1/0" or without the first slash. Errors
// are IoError and name file and path. Calls may come from any thread.
//
// The HDF5 library crashes on some damaged files, and goes in a circle in others. So each reader
// has a process, caffe_hdf5_reader, in which the library reads; when that ends, the error says
// "damaged".
class Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::string& path);
  ~Hdf5Reader();
  Hdf5Reader(const Hdf5Reader&) = delete;
  Hdf5Reader& operator=(const Hdf5Reader&) = delete;

  // Whether a group or dataset of this name exists.
  bool Contains(const std::string& name) const;
  // Whether `name` is a group (and exists).
  bool IsGroup(const std::string& name) const;

  // Names of the groups and datasets directly inside `group`: numbers first and in numeric order
  // ("2" before "10"), then the rest alphabetically.
  std::vector<std::string> LinksOf(const std::string& group) const;

  Shape ShapeOf(const std::string& dataset) const;

  // All values in row-major order, converted from whatever numeric type is stored.
  std::vector<float> ReadFloats(const std::string& dataset) const;
  std::vector<double> ReadDoubles(const std::string& dataset) const;

  // A dataset of exactly one integer, or one string.
  int64_t ReadInteger(const std::string& dataset) const;
  std::string ReadString(const std::string& dataset) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Writes one file; it appears under its name with Commit(), whole, or not at all. Groups in a
// dataset's path are created as needed, so names may hold slashes. Calls may come from any thread;
// they take turns, because most builds of the HDF5 library are not thread-safe.
class Hdf5Writer {
 public:
  // Two files of the same content are equal byte by byte: no times are kept in them.
  explicit Hdf5Writer(const std::string& path);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  // Does nothing when the group exists.
  void CreateGroup(const std::string& name);

  // The number of values has to be the shape's count (InvalidArgument).
  void WriteFloats(const std::string& dataset, const Shape& shape, std::span<const float> values);
  void WriteDoubles(const std::string& dataset, const Shape& shape, std::span<const double> values);

  void WriteInteger(const std::string& dataset, int64_t value);
  void WriteString(const std::string& dataset, const std::string& value);

  // Closes the file and makes its bytes durable, under its temporary name; nothing can be written
  // any more. Several files that belong together are all made durable before the first is
  // committed.
  void MakeDurable();
  // Of all its bytes; after MakeDurable(), before Commit().
  ContentMark mark() const;
  void Commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caffe
