// DataSupply: what layers that read records know of them, for reports of progress.
#pragma once

#include <cstdint>
#include <optional>

namespace caffe {

// A second base class of such layers. In the thread that runs the net.
class DataSupply {
 public:
  virtual ~DataSupply() = default;

  // 0: unknown, or without an end.
  virtual uint64_t records_per_epoch() const = 0;
  // Time that forward passes have waited for batches since the data was opened. Empty: not
  // measured.
  virtual std::optional<double> wait_seconds() const = 0;
};

}  // namespace caffe
