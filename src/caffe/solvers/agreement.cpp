#include "caffe/solvers/agreement.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "caffe/common.hpp"
#include "caffe/core/hash.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/model_info.hpp"
#include "caffe/plan_report.hpp"

namespace caffe {
namespace {

std::string OrNothing(const std::string& line) {
  return line.empty() ? "nothing" : StrCat("'", Printable(line), "'");
}

// Returns a text such as "line 3 is 'lr: 1', rank 0 has 'lr: 2'".
std::string FirstDifference(const std::string& root, const std::string& other) {
  std::istringstream roots(root), others(other);
  std::string of_root, of_other;
  for (int line = 1;; ++line) {
    const bool has_root = static_cast<bool>(std::getline(roots, of_root));
    const bool has_other = static_cast<bool>(std::getline(others, of_other));
    if (!has_root) of_root.clear();
    if (!has_other) of_other.clear();
    if (has_root != has_other || of_root != of_other) {
      return StrCat("line ", line, " is ", OrNothing(of_other), ", that of rank 0 ",
                    OrNothing(of_root));
    }
    if (!has_root) return "they differ";
  }
}

std::string HashOf(const std::vector<SyncedTensor*>& tensors, const Net& net) {
  uint64_t hash = Hash64("");
  for (SyncedTensor* tensor : tensors) {
    hash = Hash64(ElementsOf(*tensor, *net.graph().options.device), hash);
  }
  return std::to_string(hash);
}

}  // namespace

void CheckAgreement(Communicator& communicator, const std::vector<Fact>& facts) {
  // The texts are long and usually equal, so their hashes are compared first.
  std::string hashes;
  for (const Fact& fact : facts) hashes += StrCat(Hash64(fact.text), " ");
  const std::vector<std::string> all = communicator.AllGather(hashes);
  const auto differs =
      std::find_if(all.begin(), all.end(), [&](const std::string& one) { return one != all[0]; });
  if (differs == all.end()) return;
  const auto rank = static_cast<size_t>(differs - all.begin());
  for (const Fact& fact : facts) {
    const std::vector<std::string> texts = communicator.AllGather(fact.text);
    if (texts[0] == texts[rank]) continue;
    throw InvalidArgument(StrCat("rank ", rank, " differs from rank 0 in ", fact.name, ": ",
                                 FirstDifference(texts[0], texts[rank]),
                                 "; start all ranks with the same files and versions"));
  }
}

std::vector<Fact> FactsAboutStart(const SolverParameter& param, const Net& net) {
  SolverParameter alike = param;
  alike.clear_device_id();
  alike.clear_snapshot_prefix();
  std::set<std::string> split;  // layers whose rows differ between ranks
  for (const LayerCall& call : net.graph().calls) {
    if (call.is_split) split.insert(call.layer->name());
  }
  std::string plan;
  for (const PlanStep& step : PlanSteps(net)) {
    if (split.contains(step.layers)) continue;
    plan += StrCat(step.op, " by ", step.kernel, " (", step.operands, ")\n");
  }
  return {{"the version", Version()},
          {"the solver", alike.DebugString()},
          {"the net", WithoutMeanImage(net.definition()).DebugString()},
          {"the net's plan (are the processors of one kind?)", plan}};
}

std::vector<Fact> FactsAboutWeights(int iteration, const Net& net) {
  return {{"the iteration", std::to_string(iteration)},
          {StrCat("the hash of the weights after iteration ", iteration),
           HashOf(WeightTensors(net), net)}};
}

std::vector<Fact> FactsAboutState(int iteration, const Net& net,
                                  const std::vector<std::shared_ptr<Blob>>& history) {
  std::vector<SyncedTensor*> tensors;
  for (const auto& blob : history) tensors.push_back(&blob->data_tensor());
  return {{"the snapshot's iteration", std::to_string(iteration)},
          {"the hash of the snapshot's weights", HashOf(WeightTensors(net), net)},
          {"the hash of the snapshot's history", HashOf(tensors, net)}};
}

std::string ElementsOf(SyncedTensor& tensor, Device& device) {
  std::string elements(tensor.desc().bytes(), '\0');
  device.CopyToHost(elements.data(), tensor.data(), elements.size());
  return elements;
}

std::vector<SyncedTensor*> WeightTensors(const Net& net) {
  std::vector<SyncedTensor*> tensors;
  for (size_t layer = 0; layer < net.layers().size(); ++layer) {
    for (const std::shared_ptr<Blob>& blob : net.layer_params(static_cast<int>(layer))) {
      tensors.push_back(&blob->data_tensor());
    }
  }
  return tensors;
}

}  // namespace caffe
