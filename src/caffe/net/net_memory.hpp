// NetMemory: memory of a net that outlives runs and plans.
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

  // Memory of the tensors of this net's programs. Gives blobs the plan's shapes.
  Bindings Bind(const Graph& graph, bool keep_all);

  // Bytes of parameters, their gradients, and everything else that outlives a run.
  static int64_t PersistentBytes(const Graph& graph);
  // Bytes of parameters and their copies that are in memory now.
  int64_t WeightBytes() const;
  // Throws DeviceError if the plan will take more memory than the device has free.
  static void CheckFits(const NetSource& source, const Graph& graph);
  // The same for a plan that will take the place of the current one, for inputs of other shapes.
  static void CheckFitsInstead(const NetSource& source, const Graph& graph, const Graph& current);

  std::shared_ptr<Device> device;
  NetBlobs blobs;
  NetParams params;
  double loss_scale = 1;  // shown in a keep-all net's diffs of losses

 private:
  // Values that outlive a run and are not the last version of a blob. A plan for other shapes finds
  // them by name and version.
  std::map<std::string, std::unique_ptr<SyncedTensor>> kept_;
};

}  // namespace caffe
