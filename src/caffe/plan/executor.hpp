// Executor: runs a program. Allocates all memory before the first step runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "caffe/ops/kernel.hpp"
#include "caffe/plan/appended_work.hpp"
#include "caffe/plan/captured_segments.hpp"
#include "caffe/plan/program.hpp"
#include "caffe/plan/program_memory.hpp"
#include "caffe/plan/step_profiler.hpp"
#include "caffe/plan/weight_copy_cache.hpp"

namespace caffe {

// Owns the program's arena and workspace. Not thread-safe. Run allocates nothing after its first
// call. Disabling the pass `capture-graph` switches off the capture of segments (CapturedSegments).
class Executor {
 public:
  // Receives parameter gradients while a run is in progress.
  struct GradientListener {
    // No later step of the run writes this gradient.
    std::function<void(const SyncedTensor& gradient)> on_final;
    // Called after on_final: no later step uses the gradient's parameter either, so the parameter
    // may be updated. May be empty.
    std::function<void(const SyncedTensor& gradient)> on_updatable;
    // Returns true if other work waits for this gradient: a captured graph then ends with it.
    std::function<bool(const SyncedTensor& gradient)> is_awaited;
  };

  explicit Executor(std::shared_ptr<const Program> program);

  // Sets the memory of tensors outside the arena. Call it before the first run, and whenever they
  // have moved to other SyncedTensors.
  void Bind(Bindings bindings);
  const Bindings& bindings() const { return memory_.bindings(); }

  struct RunOptions {
    // Nothing: forward, then backward, through all layers. A loop over parts of the batch runs
    // whole, with the layer of its first step.
    std::optional<Direction> direction = Direction::kForward;
    int first_layer = 0;  // inclusive
    int last_layer = -1;  // inclusive; -1: to the end
    RandomState random;
    // Factor of losses in backward, in device memory. Null: no factor.
    const double* loss_scale = nullptr;
    bool accumulate = false;  // add to parameter gradients instead of overwriting them
    const GradientListener* listener = nullptr;  // may be null
    // Called after each step with what it wrote; for looking for errors.
    std::function<void(const Program::Step&, std::span<const TensorView> outputs)> inspect;
    // Work after the last step. May be null.
    AppendedWork* appended = nullptr;
  };
  // A layer with tops that turned out to have other shapes than planned.
  struct ShapeChange {
    int layer = 0;
    std::vector<Shape> tops;
  };
  // Forward runs from first_layer upwards; backward runs down to first_layer, or to layer 0 if both
  // directions run. A shape change stops the run before that layer has written anything.
  std::optional<ShapeChange> Run(const RunOptions& options);
  // Returns the memory, including memory that was offered and is still unused, for a program that
  // replaces this one. The next run allocates again unless memory is offered first.
  ProgramMemory::Blocks ReleaseMemory();
  // Memory that is too small is not used.
  void OfferMemory(ProgramMemory::Blocks blocks) { memory_.Offer(std::move(blocks)); }
  WeightCopyCache& copies() { return copies_; }
  // Computes missing copies and those with changed weights.
  void PrepareCopies();
  // Shares memory with equal copies of another net that has the same weights, on devices with
  // host-accessible memory. Prepares the other's copies, and then those that are not shared. A run
  // that recomputes a shared copy allocates separate memory for it.
  void ShareCopies(Executor& other);

  // Takes over results that `previous` computed before `layer` and that this one reads later.
  // `previous` runs a program of the same net with other shapes from `layer` on.
  void TakeOver(const Executor& previous, int layer);

  // True if the last run with a listener only launched work that had run before, as the next run of
  // the same kind will. Other runs load code and capture graphs, for which a device may wait until
  // it is idle; if it is busy with an all-reduce, it then waits for other ranks.
  bool is_settled() const { return is_settled_; }

  // Parameter gradients that backward writes, in the order in which they become final.
  std::vector<SyncedTensor*> Gradients() const;

  // While it is on, steps run one by one.
  StepProfiler& profiler() { return profiler_; }
  const StepProfiler& profiler() const { return profiler_; }
  CapturedSegments::Statistics captured() const { return segments_.statistics(); }
  const Program& program() const { return *program_; }

 private:
  // Read by kernels in device memory if the device replays its work.
  struct PassNumbers {
    uint64_t seed = 0, pass = 0;
  };
  // How one run launches its steps.
  struct Launch {
    const RunOptions& options;
    Stream& stream;
    bool is_capture = false;
  };

  // Tensors that are computed before a layer's first step and read later.
  std::set<int> AliveBefore(int layer) const;

  // Allocates memory, looks up addresses and sends what kernels read in device memory.
  void Prepare(const RunOptions& options);
  void UpdateCopies(const RunOptions& options);
  void MakeCopy(size_t copy, const Launch& launch);
  void RunCopy(size_t copy, const Launch& launch);
  void ForgetSegments();
  void SendPassNumbers(const RunOptions& options);
  // Runs the steps that the options select, up to the last one or a shape change.
  std::optional<ShapeChange> RunPart(const RunOptions& options);
  bool IsPartOf(const Program::Step& step, const RunOptions& options) const;
  // Runs steps [first, last), and the appended work if given.
  void RunSegment(size_t first, size_t last, AppendedWork* appended, const RunOptions& options);
  void RunSteps(size_t first, size_t last, AppendedWork* appended, const Launch& launch);
  void RunRounds(const Program::Loop& loop, const Launch& launch);
  void ReportGradients(size_t step, const RunOptions& options) const;
  // Returns the result of a host call; empty for other steps.
  std::vector<Shape> RunStep(size_t index, const Launch& launch);
  std::vector<Shape> RunStep(size_t index, KernelContext context, const Launch& launch);
  KernelContext ContextOf(size_t index, const Launch& launch) const;

  std::shared_ptr<const Program> program_;
  ProgramMemory memory_;
  WeightCopyCache copies_;
  CapturedSegments segments_;
  StepProfiler profiler_;
  std::shared_ptr<void> pass_numbers_;  // null if kernels use the context's numbers
  bool is_settled_ = false;
};

}  // namespace caffe
