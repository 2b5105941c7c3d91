// What ranks of several processes make sure of before they train together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/distributed/communicator.hpp"
#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// Something that all ranks should have alike: its name, and its text in lines.
struct Fact {
  std::string name;  // "the solver"
  std::string text;
};

// All ranks call it, with facts of the same names. Throws InvalidArgument on all of them where one
// differs: it names a rank that differs from rank 0, and the first line in which it does.
void CheckAgreement(Communicator& communicator, const std::vector<Fact>& facts);

// Of a solver before its first step: version, solver, net and plan, without what belongs to one
// machine (the device's number, where snapshots go).
std::vector<Fact> FactsAboutStart(const SolverParameter& param, const Net& net);
// Of a solver after some iterations.
std::vector<Fact> FactsAboutWeights(int iteration, const Net& net);
// Of a solver that has been restored from a snapshot.
std::vector<Fact> FactsAboutState(int iteration, const Net& net,
                                  const std::vector<std::shared_ptr<Blob>>& history);

// As they lie in memory, on whichever device.
std::string ElementsOf(SyncedTensor& tensor, Device& device);

// Of all layers, those that do not learn too.
std::vector<SyncedTensor*> WeightTensors(const Net& net);

}  // namespace caffe
