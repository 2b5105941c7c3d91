#include "caffe/solvers/checkpoints.hpp"

#include <utility>

#include "caffe/core/activity.hpp"
#include "caffe/trace.hpp"

namespace caffe {

Checkpoints::Checkpoints(const SolverContext& context)
    : context_(context), prefix_(SnapshotPrefix(context.param, context.options.file)) {
  if (context.param.snapshot() > 0 && context.parallel.is_root()) CheckSnapshotWritable(prefix_);
}

void Checkpoints::CheckWritable(const std::vector<std::shared_ptr<Blob>>& history) const {
  if (!context_.parallel.is_root()) return;
  CheckSnapshotWritable(prefix_);
  CheckSize(history);
}

void Checkpoints::CheckSize(const std::vector<std::shared_ptr<Blob>>& history) const {
  if (context_.param.snapshot_format() == SolverParameter::HDF5) return;
  const auto bytes_of = [](const Blob& blob) { return blob.data_tensor().desc().bytes(); };
  uint64_t weight_bytes = 0, history_bytes = 0;
  for (const Net::LearnableParam& one : context_.net.learnable_params())
    weight_bytes += bytes_of(*one.blob) * (context_.param.snapshot_diff() ? 2 : 1);
  for (const std::shared_ptr<Blob>& blob : history) history_bytes += bytes_of(*blob);
  CheckSnapshotFits(weight_bytes, history_bytes);
}

void Checkpoints::AgreeOnWeights(int iteration) const {
  if (context_.parallel.spans_processes())
    context_.parallel.Agree(FactsAboutWeights(iteration, context_.net));
}

std::string Checkpoints::Write(const std::vector<std::shared_ptr<Blob>>& history,
                               SolverProgress progress) {
  const int iteration = progress.iter;
  if (!context_.parallel.is_root()) {
    last_ = iteration;
    return "";
  }
  const TraceSpan span("snapshot");
  const Activity writing("snapshot", "writes", prefix_);
  const TrainingProgress::Pause pause(context_.reporter);
  const bool as_hdf5 = context_.param.snapshot_format() == SolverParameter::HDF5;
  std::string file = WriteSnapshot(prefix_, as_hdf5, context_.param.snapshot_diff(), context_.net,
                                   history, std::move(progress));
  last_ = iteration;
  context_.reporter.Report(SnapshotReport{iteration, file});
  return file;
}

}  // namespace caffe
