// Reads a net's loss, immediately or asynchronously.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/plan/program.hpp"

namespace caffe {

// The weighted sum of the tops with a loss weight, of layers first to last. Waits for the device.
float LossOf(const Graph& graph, const Bindings& bindings, int first, int last);

// Losses that are being copied to the host while the host continues.
class LossesInFlight {
 public:
  explicit LossesInFlight(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  // Sends the loss after all passes that were launched so far.
  void Send(const Graph& graph, const Bindings& bindings);
  // Waits for the loss that was sent first.
  float Await();

 private:
  struct Part {
    TensorDesc desc;
    float weight = 0;
  };
  struct InFlight {
    std::vector<Part> parts;  // consecutive in memory
    std::shared_ptr<void> memory;
    std::unique_ptr<Event> arrived;
    size_t bytes = 0;
  };
  InFlight Take(size_t bytes);

  std::shared_ptr<Device> device_;
  std::deque<InFlight> in_flight_, idle_;  // idle_: memory for reuse
};

}  // namespace caffe
