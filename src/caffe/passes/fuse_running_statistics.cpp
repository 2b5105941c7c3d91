// A row that lets the node which computes a batch's statistics also update the running ones:
//
//   BatchNorm(x) -> y, mean, variance; UpdateRunningStatistics(mean, variance) -> running
//                                                   -> BatchNorm(x) -> y, mean, variance, running
//
// A region with ChannelStatistics takes the update in as a member. This saves a step for a few
// numbers, which on a GPU takes as long as it takes to launch. It follows fuse-statistics, which
// decides who computes the statistics.
#include <algorithm>

#include "caffe/ops/norm.hpp"
#include "caffe/passes/fusion.hpp"

namespace caffe::passes {
namespace {

using Norm = ops::BatchNorm;
using Update = ops::UpdateRunningStatistics;

bool IsReadAsWritten(const Fusion& fusion, const Operand& read) {
  const Node& writer = *fusion.WriterOf(read);
  const auto written = std::ranges::find(writer.outputs, read.value, &Result::value);
  return written->dtype == read.dtype && read.dtype == read->desc.dtype;
}

// The node that computes both statistics in the types in which they are read; null if there is
// none. Without items no kernel computes them: results are zeros.
Node* WriterOfStatistics(const Fusion& fusion, const Node& update) {
  const Operand &mean = update.inputs[Update::kBatchMean],
                &variance = update.inputs[Update::kBatchVariance];
  Node* writer = fusion.WriterOf(mean);
  const bool writes_both = writer != nullptr && writer == fusion.WriterOf(variance) &&
                           writer->outputs[0]->desc.count() > 0 && IsReadAsWritten(fusion, mean) &&
                           IsReadAsWritten(fusion, variance);
  return writes_both ? writer : nullptr;
}

// True if a step between the two reads or writes the running statistics: of a layer that shares
// them.
bool IsTouchedBetween(const Fusion& fusion, const Node& writer, const Node& update) {
  const auto is_updated = [&](Value* value) {
    return value != nullptr && std::ranges::any_of(update.outputs, [&](Value* output) {
             return output != nullptr && output->root() == value->root();
           });
  };
  const auto begin = fusion.nodes().begin();
  return std::any_of(
      begin + fusion.StepOf(writer) + 1, begin + fusion.StepOf(update), [&](const Node* node) {
        return !fusion.IsErased(node) && (std::ranges::any_of(node->inputs, is_updated) ||
                                          std::ranges::any_of(node->outputs, is_updated));
      });
}

bool AddToNorm(Node& norm, const Node& update) {
  const auto* op = norm.op.As<Norm>();
  if (op == nullptr || norm.outputs.size() > Norm::kRunning) return false;
  norm.op = Norm{op->eps, op->epilogue, *update.op.As<Update>()};
  norm.outputs.insert(norm.outputs.end(), update.outputs.begin(), update.outputs.end());
  AddLayers(norm, update);
  return true;
}

bool FuseRunningStatistics(Fusion& fusion, Node& update) {
  if (update.op.As<Update>() == nullptr) return false;
  Node* writer = WriterOfStatistics(fusion, update);
  if (writer == nullptr || IsTouchedBetween(fusion, *writer, update)) return false;
  Node member = update;
  member.signature = writer->signature;
  const bool is_region = writer->op.As<ops::Fused>() != nullptr;
  const bool is_fused =
      is_region ? fusion.Merge(*writer, member, nullptr, *writer) : AddToNorm(*writer, update);
  if (is_fused) fusion.Erase(update);
  return is_fused;
}

const FusionRow running_statistics_row({.order = 70,
                                        .name = "fuse-running-statistics",
                                        .apply = FuseRunningStatistics,
                                        .for_keep_all = true});

}  // namespace
}  // namespace caffe::passes
