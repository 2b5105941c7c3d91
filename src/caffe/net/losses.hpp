// A net's loss, read at once or a pass later.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/plan/program.hpp"

namespace caffe {

// The weighted sum of the tops that have a loss weight, of layers first to last. Waits for the
// device.
float LossOf(const Graph& graph, const Bindings& bindings, int first, int last);

// Losses on their way to the host, which goes on meanwhile.
class LossesInFlight {
 public:
  explicit LossesInFlight(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  // Behind the passes that the device has been given.
  void Send(const Graph& graph, const Bindings& bindings);
  // The oldest that was sent.
  float Await();

 private:
  struct Part {
    TensorDesc desc;
    float weight = 0;
  };
  struct InFlight {
    std::vector<Part> parts;  // one after the other in memory
    std::shared_ptr<void> memory;
    std::unique_ptr<Event> arrived;
    size_t bytes = 0;
  };
  InFlight Take(size_t bytes);

  std::shared_ptr<Device> device_;
  std::deque<InFlight> in_flight_, idle_;  // idle: whose memory can serve again
};

}  // namespace caffe
