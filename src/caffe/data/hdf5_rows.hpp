// Reads rows of HDF5 files for the HDF5Data layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/shape.hpp"

namespace caffe::data {

struct Hdf5RowsOptions {
  std::string list;                   // text file with the name of one HDF5 file per line
  std::vector<std::string> datasets;  // must have equal numbers of rows in each file
  bool shuffle = false;               // shuffle the files and the rows of each, in every epoch
  uint64_t seed = 0;
  std::string stream;  // name of the random stream
  uint64_t start = 0;  // rows already used by all ranks together
  // From `start` on, ranks alternate with `block` rows each; this rank's turn is `rank`.
  uint64_t rank = 0;
  uint64_t ranks = 1;
  uint64_t block = 1;
  // No block contains rows of two epochs: the last block of an epoch is shortened. Requires start
  // 0.
  bool whole_epochs = false;
};

// An endless sequence of rows over all files. One file is in memory at a time. Rows depend only on
// their number in the sequence, so that a resumed run continues exactly.
class Hdf5Rows {
 public:
  // Opens every file to inspect its datasets. Throws IoError or InvalidArgument naming the file,
  // the dataset and the problem: missing, another row shape, or another number of rows.
  explicit Hdf5Rows(const Hdf5RowsOptions& options);

  // Shape of one row of each dataset.
  const std::vector<Shape>& row_shapes() const { return row_shapes_; }
  // True if the last block of an epoch may be smaller than the others.
  bool ends_epochs() const { return options_.whole_epochs; }
  // Total number of rows in all files.
  uint64_t count() const { return count_; }
  // Position between blocks, counted over all ranks.
  uint64_t rows_consumed() const {
    return options_.whole_epochs ? number_ : number_ - options_.rank * options_.block;
  }
  // Rows left in this rank's turn.
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
  uint64_t number_ = 0;  // of this rank's next row
  uint64_t taken_of_block_ = 0;

  uint64_t epoch_ = 0;
  std::vector<uint32_t> file_order_;
  size_t loaded_file_ = 0;
  std::vector<std::vector<float>> loaded_;  // per dataset; empty before the first row
  std::vector<uint32_t> row_order_;
  std::vector<const float*> row_;
};

}  // namespace caffe::data
