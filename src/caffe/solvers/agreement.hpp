// Checks that ranks of several processes agree before they train together.
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

// A text, in lines, that must be equal on all ranks, with a name for error messages.
struct Fact {
  std::string name;  // "the solver"
  std::string text;
};

// All ranks must call it, with facts of the same names. If a fact differs, throws InvalidArgument
// on all of them, naming a rank that differs from rank 0 and the first different line.
void CheckAgreement(Communicator& communicator, const std::vector<Fact>& facts);

// Facts about a solver before its first update: version, solver, net and plan, without what is
// specific to one machine (device number, snapshot path).
std::vector<Fact> FactsAboutStart(const SolverParameter& param, const Net& net);
// Facts about a solver after some iterations.
std::vector<Fact> FactsAboutWeights(int iteration, const Net& net);
// Facts about a solver that has been restored from a snapshot.
std::vector<Fact> FactsAboutState(int iteration, const Net& net,
                                  const std::vector<std::shared_ptr<Blob>>& history);

// The elements in their memory layout, from any device.
std::string ElementsOf(SyncedTensor& tensor, Device& device);

// Includes parameters that are not learnable.
std::vector<SyncedTensor*> WeightTensors(const Net& net);

}  // namespace caffe
