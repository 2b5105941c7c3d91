// NetMemory: what a net has in memory from run to run, whatever plan it runs by.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "caffe/net/net_blobs.hpp"
#include "caffe/net/net_params.hpp"
#include "caffe/net/plan.hpp"

namespace caffe {

struct NetMemory {
  explicit NetMemory(std::shared_ptr<Device> device) : device(std::move(device)) {}

  // Where a program of this net finds its tensors. Blobs take the plan's shapes.
  Bindings Bind(const Graph& graph, bool keep_all);

  // In bytes: of parameters with their gradients, and of all else that outlives a run.
  static int64_t PersistentBytes(const Graph& graph);
  // Throws DeviceError where the device has less memory free than the plan will take.
  static void CheckFits(const NetSource& source, const Graph& graph);

  std::shared_ptr<Device> device;
  NetBlobs blobs;
  NetParams params;
  double loss_scale = 1;  // as a keep-all net's diffs of losses show it

 private:
  // Of values that are no blob's last version but outlive a run. A plan for other shapes finds them
  // again under the value's name and version.
  std::map<std::string, std::unique_ptr<SyncedTensor>> kept_;
};

}  // namespace caffe
