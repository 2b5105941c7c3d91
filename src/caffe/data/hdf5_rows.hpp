// Rows of HDF5 files: what the HDF5Data layer reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/shape.hpp"

namespace caffe::data {

struct Hdf5RowsOptions {
  std::string list;                   // text file with the name of one HDF5 file per line
  std::vector<std::string> datasets;  // which ones, all with as many rows in each file
  bool shuffle = false;               // the files, and the rows of each, anew in each epoch
  uint64_t seed = 0;
  std::string stream;  // name under which random numbers are drawn
  uint64_t start = 0;  // rows already used by all ranks together
  // From `start` on, ranks take turns with `block` rows each; this one's turn is `rank`.
  uint64_t rank = 0;
  uint64_t ranks = 1;
  uint64_t block = 1;
  // No block has rows of two epochs: the last one of an epoch ends with it. Without start.
  bool whole_epochs = false;
};

// An endless sequence of rows over all files. One file is in memory at a time. Rows follow from
// their number in the sequence, so that a resumed run continues where it was.
class Hdf5Rows {
 public:
  // Opens every file to look at its datasets. Throws IoError or InvalidArgument naming the file,
  // the dataset and what is wrong: missing, of another row shape, or with another number of rows.
  explicit Hdf5Rows(const Hdf5RowsOptions& options);

  // Shape of one row of each dataset.
  const std::vector<Shape>& row_shapes() const { return row_shapes_; }
  // Whether the last block of an epoch may be smaller than the others.
  bool ends_epochs() const { return options_.whole_epochs; }
  // Rows of all files.
  uint64_t count() const { return count_; }
  // Counted over all ranks, between blocks.
  uint64_t rows_consumed() const {
    return options_.whole_epochs ? number_ : number_ - options_.rank * options_.block;
  }
  // Rows that are left of this rank's turn.
  uint64_t LeftOfBlock() const;

  // Points to the next row of each dataset, valid until the next call.
  const std::vector<const float*>& Next();

 private:
  void ReadList();
  void CheckFiles();
  void StartEpoch(uint64_t epoch);
  void LoadFile(size_t file);
  uint64_t BlockAt(uint64_t number) const;

  const Hdf5RowsOptions options_;
  const RandomStream random_;
  std::vector<std::string> files_;
  std::vector<uint64_t> file_rows_;
  std::vector<Shape> row_shapes_;
  uint64_t count_ = 0;
  uint64_t number_ = 0;  // of the next row of this rank
  uint64_t taken_of_block_ = 0;

  uint64_t epoch_ = 0;
  std::vector<uint32_t> file_order_;
  size_t loaded_file_ = 0;
  std::vector<std::vector<float>> loaded_;  // per dataset; empty before the first row
  std::vector<uint32_t> row_order_;
  std::vector<const float*> row_;
};

}  // namespace caffe::data
