#include "caffe/data/hdf5_rows.hpp"

#include <algorithm>
#include <numeric>

#include "caffe/core/activity.hpp"
#include "caffe/error.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/io/text_file.hpp"

namespace caffe::data {
namespace {

// Fills with 0, 1, ..., shuffled by the stream's numbers for `draw` (Fisher-Yates).
void FillOrder(std::vector<uint32_t>* order, bool shuffle, const RandomStream& random,
               uint64_t draw) {
  std::iota(order->begin(), order->end(), 0u);
  if (!shuffle) return;
  for (uint32_t i = static_cast<uint32_t>(order->size()) - 1; i > 0; --i) {
    std::swap((*order)[i], (*order)[ToRange(random.Bits(i, draw), i + 1)]);
  }
}

Shape RowShape(const Shape& dataset) {
  return Shape(std::vector<int64_t>(dataset.dims().begin() + 1, dataset.dims().end()));
}

}  // namespace

Hdf5Rows::Hdf5Rows(const Hdf5RowsOptions& options)
    : options_(options), random_(options.seed, StreamOf(options.stream + "/rows")) {
  ReadList();
  CheckFiles();
  number_ = options.start;
  for (uint64_t rank = 0; rank < options.rank; ++rank) number_ += BlockAt(number_);
  epoch_ = number_ / count_;
  file_order_.resize(files_.size());
  row_.resize(options.datasets.size());
  StartEpoch(epoch_);
}

void Hdf5Rows::ReadList() {
  files_ = ReadLines(options_.list);
  Require(!files_.empty(), options_.list, ": the list names no HDF5 file");
  Require(!files_[0].starts_with("\x89HDF"), options_.list,
          ": an HDF5 file, where a text file that names HDF5 files is wanted, one on each line");
}

void Hdf5Rows::CheckFiles() {
  for (const std::string& file : files_) {
    const Hdf5Reader reader(file);
    uint64_t rows = 0;
    for (size_t i = 0; i < options_.datasets.size(); ++i) {
      const std::string& name = options_.datasets[i];
      if (!reader.Contains(name)) {
        throw InvalidArgument(
            StrCat(file, ": no dataset '", name, "'; the tops' names must be those of datasets"));
      }
      const Shape shape = reader.ShapeOf(name);
      Require(shape.num_axes() >= 1, file, ": dataset '", name,
              "' is a single number; it must have rows");
      if (i == 0) rows = static_cast<uint64_t>(shape[0]);
      Require(static_cast<uint64_t>(shape[0]) == rows, file, ": dataset '", name, "' has ",
              shape[0], " rows, '", options_.datasets[0], "' has ", rows, "; they must agree");
      if (row_shapes_.size() == i) row_shapes_.push_back(RowShape(shape));
      Require(RowShape(shape) == row_shapes_[i], file, ": rows of dataset '", name, "' have shape ",
              RowShape(shape), ", those of ", files_[0], " ", row_shapes_[i]);
    }
    Require(rows > 0, file, ": the datasets have no rows");
    file_rows_.push_back(rows);
    count_ += rows;
  }
}

void Hdf5Rows::StartEpoch(uint64_t epoch) {
  epoch_ = epoch;
  FillOrder(&file_order_, options_.shuffle, random_, epoch << 32);
  loaded_.clear();
}

void Hdf5Rows::LoadFile(size_t file) {
  const Activity reading("reader", "reads", files_[file]);
  const Hdf5Reader reader(files_[file]);
  loaded_.clear();
  for (const std::string& name : options_.datasets) loaded_.push_back(reader.ReadFloats(name));
  loaded_file_ = file;
  row_order_.resize(file_rows_[file]);
  FillOrder(&row_order_, options_.shuffle, random_, epoch_ << 32 | (file + 1));
}

const std::vector<const float*>& Hdf5Rows::Next() {
  if (number_ / count_ != epoch_) StartEpoch(number_ / count_);
  uint64_t position = number_ % count_;
  size_t place = 0;
  while (position >= file_rows_[file_order_[place]]) position -= file_rows_[file_order_[place++]];
  const size_t file = file_order_[place];
  if (loaded_.empty() || loaded_file_ != file) LoadFile(file);
  for (size_t i = 0; i < row_.size(); ++i) {
    row_[i] = loaded_[i].data() + row_order_[position] * row_shapes_[i].count();
  }
  const uint64_t block = BlockAt(number_ - taken_of_block_);
  ++number_;
  if (++taken_of_block_ == block) {
    for (uint64_t rank = 1; rank < options_.ranks; ++rank) number_ += BlockAt(number_);
    taken_of_block_ = 0;
  }
  return row_;
}

uint64_t Hdf5Rows::LeftOfBlock() const {
  return BlockAt(number_ - taken_of_block_) - taken_of_block_;
}

// Number of rows in the block that begins at `number`.
uint64_t Hdf5Rows::BlockAt(uint64_t number) const {
  if (!options_.whole_epochs) return options_.block;
  return std::min(options_.block, count_ - number % count_);
}

}  // namespace caffe::data
