// DataSupply: facts about the records of a data layer, for reports of progress and memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace caffe {

// Host memory that a layer uses in addition to its net's plan, in bytes.
struct SupplyMemory {
  int64_t read_ahead =
      0;  // batches that are prepared before they are asked for, and copied records
  // Pages of a database file that have been read. Two layers that read the same file share them.
  std::string mapped_file;
  int64_t mapped = 0;
};

// A record of a batch.
struct SuppliedRecord {
  uint64_t index = 0;  // position in the data, from 0
  // Its key in a database or "LINE: path" of a list; empty if it has no name. May contain any
  // bytes.
  std::string name;
};

// A second base class of data layers. Methods are called in the thread that runs the net.
class DataSupply {
 public:
  virtual ~DataSupply() = default;

  // 0: unknown or endless.
  virtual uint64_t records_per_epoch() const = 0;
  // Records that one forward pass takes, which is the batch size; 0: unknown. The last batch of an
  // epoch is smaller if DataPlace::whole_epochs is set and the size does not divide the records.
  virtual uint64_t records_per_batch() const { return 0; }
  // A fingerprint of the records, equal for copies of the same data: their number, the first and
  // the last record, or the program that generates them. Reads a few of them. Empty: unknown, or
  // determined by the files that the layer names.
  virtual std::string content() const { return ""; }
  // The records of the batch that the last forward pass read, in order. With skip_broken the record
  // that replaced a broken one is listed in its position. Empty: unknown, or nothing was read yet.
  virtual std::vector<SuppliedRecord> records_of_batch() const { return {}; }
  // Time that forward passes have waited for batches since the data was opened. Empty: not
  // measured.
  virtual std::optional<double> wait_seconds() const = 0;
  // Called before Layer::Prepare if the net is compiled but never run: nothing should be read
  // ahead.
  virtual void OnlyPlan() {}
  // Expected memory after `batches` batches.
  virtual SupplyMemory MemoryAfter(uint64_t /*batches*/) const { return {}; }
};

}  // namespace caffe
