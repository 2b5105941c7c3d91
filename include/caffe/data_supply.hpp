// DataSupply: what layers that read records know of them, for reports of progress and of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace caffe {

// Host memory that a layer takes beside its net's plan, in bytes.
struct SupplyMemory {
  int64_t read_ahead =
      0;  // batches that are prepared before they are asked for, and copied records
  // Pages of a database's file that have been read. Two layers that read one file share them.
  std::string mapped_file;
  int64_t mapped = 0;
};

// A record of a batch.
struct SuppliedRecord {
  uint64_t index = 0;  // in the data, from 0 on
  // Its key in a database; "LINE: path" of a list; empty: it has none. Any bytes.
  std::string name;
};

// A second base class of such layers. In the thread that runs the net.
class DataSupply {
 public:
  virtual ~DataSupply() = default;

  // 0: unknown, or without an end.
  virtual uint64_t records_per_epoch() const = 0;
  // Records that one forward pass takes, the batch size; 0: unknown. The last batch of an epoch has
  // fewer where DataPlace::whole_epochs asks for that.
  virtual uint64_t records_per_batch() const { return 0; }
  // What tells the records from others, alike for equal copies: how many there are, the first and
  // the last, or the program that makes them. Reads a few of them. Empty: unknown, or told by the
  // files that the layer names.
  virtual std::string content() const { return ""; }
  // The records of the batch that the last forward pass read, in order. With skip_broken a record
  // that replaced a broken one stands in its place. Empty: unknown, or nothing was read yet.
  virtual std::vector<SuppliedRecord> records_of_batch() const { return {}; }
  // Time that forward passes have waited for batches since the data was opened. Empty: not
  // measured.
  virtual std::optional<double> wait_seconds() const = 0;
  // Before Layer::Prepare: the net is compiled and never run, so that nothing is to be read ahead.
  virtual void OnlyPlan() {}
  // After so many batches.
  virtual SupplyMemory MemoryAfter(uint64_t /*batches*/) const { return {}; }
};

}  // namespace caffe
