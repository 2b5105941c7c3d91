// Executor: runs a program. Allocates all memory before the first step runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "caffe/ops/kernel.hpp"
#include "caffe/plan/appended_work.hpp"
#include "caffe/plan/program.hpp"

namespace caffe {

// Accumulated times of a step; updated while profiling is on.
struct StepTime {
  double seconds = 0;
  int64_t runs = 0;
};

// Owns the program's arena and workspace. Not thread-safe. Run allocates nothing after its first
// call.
//
// If the device supports capture, the steps between two host calls are captured when they run for
// the second time, and launched as one graph from then on; numbers that change from pass to pass
// are in device memory. Disabling the pass `capture-graph` switches that off.
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
  const Bindings& bindings() const { return bindings_; }

  struct RunOptions {
    // Nothing: forward, then backward, through all layers.
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
  struct Memory {
    std::shared_ptr<void> arena, workspace;
    int64_t arena_bytes = 0, workspace_bytes = 0;
  };
  Memory ReleaseMemory();
  // Memory that is too small is not used.
  void OfferMemory(Memory memory) { offered_ = std::move(memory); }
  // Copies of weights are recomputed in the next run.
  void ForgetCopies();
  // Computes missing copies and those with changed weights.
  void PrepareCopies();
  // Shares memory with equal copies of another net that has the same weights, on devices with
  // host-accessible memory. Prepares the copies of both. A run that recomputes a shared copy
  // allocates separate memory for it.
  void ShareCopies(Executor& other);

  // Takes over results that `previous` computed before `layer` and that this one reads later.
  // `previous` runs a program of the same net with other shapes from `layer` on.
  void TakeOver(const Executor& previous, int layer);

  // Copies of weights that outlive a run; see graph/weight_copies.hpp. A run first recomputes
  // copies whose weights have changed since, according to SyncedTensor::version().
  struct KeptCopy {
    const SyncedTensor* weights = nullptr;
    SyncedTensor* copy = nullptr;
    bool operator==(const KeptCopy&) const = default;
  };
  // Conversions that steps read and that an update may write itself; empty if memory is
  // host-accessible.
  std::vector<KeptCopy> KeptCopies() const;
  // True if a copy is up to date with its weights.
  bool IsMade(const KeptCopy& copy) const;
  // Tells that the code that changed the weights has written this copy, too.
  void MarkMade(const KeptCopy& copy);

  // True if the last run with a listener only launched work that had run before, as the next run of
  // the same kind will. Other runs load code and capture graphs, for which a device may wait until
  // it is idle; if it is busy with an all-reduce, it then waits for other ranks.
  bool is_settled() const { return is_settled_; }

  // Parameter gradients that backward writes, in the order in which they become final.
  std::vector<SyncedTensor*> Gradients() const;

  // Measures the steps' times; they then run one by one. On a GPU these are device times.
  void set_profiling(bool on) { is_profiling_ = on; }
  const std::vector<StepTime>& step_times() const { return step_times_; }
  // Statistics of segments that are launched as one graph.
  struct Captured {
    int stretches = 0;
    size_t nodes = 0;    // kernels, copies and fills in all of them
    int refused = 0;     // segments that the device could not capture
    std::string reason;  // of the last refusal
  };
  Captured captured() const;
  const Program& program() const { return *program_; }

 private:
  struct Operands {
    std::vector<TensorView> inputs, outputs;
  };
  // An operand outside the arena. Its address is looked up before each run, because its owner may
  // have reshaped, shared or written it since.
  struct BoundOperand {
    TensorView* view = nullptr;
    SyncedTensor* tensor = nullptr;
    int64_t offset = 0;  // in bytes
    bool is_output = false;
  };

  // Steps [first, last) of a run, without host calls, and the appended work.
  struct Segment {
    bool has_run = false, cannot_be_recorded = false;
    std::unique_ptr<CapturedGraph> recorded;
  };
  struct SegmentKey {
    size_t first = 0, last = 0;
    bool accumulate = false, has_appended = false;
    auto operator<=>(const SegmentKey&) const = default;
  };
  // Read by kernels in device memory if the device replays its work.
  struct PassNumbers {
    uint64_t seed = 0, pass = 0;
  };

  // Tensors in the arena, by names that are the same in all programs of one net.
  std::map<std::string, int> ArenaTensors() const;
  TensorView ArenaView(int tensor) const;
  // Tensors that are computed before a layer's first step and read later.
  std::set<int> AliveBefore(int layer) const;

  void MakeCopies(const RunOptions& options);
  bool IsCurrent(size_t copy) const;
  // Gives stale copies memory of their own, because others may be reading the shared memory.
  void DetachStaleCopies();
  void MakeCopy(size_t index, const RunOptions& options);
  void Allocate();
  void BindOperands();
  void RefreshBoundOperands();
  void ForgetRecordings();
  void DropRecordingsOfOtherLossScale(const RunOptions& options);
  void PrepareAppended(const RunOptions& options);
  void SendPassNumbers(const RunOptions& options);
  // Runs the steps that the options select, up to the last one or a shape change.
  std::optional<ShapeChange> RunPart(const RunOptions& options);
  void MarkOutputsWritten();
  bool IsPartOf(const Program::Step& step, const RunOptions& options) const;
  // Runs steps [first, last), and the appended work if given.
  void RunSegment(size_t first, size_t last, AppendedWork* appended, const RunOptions& options);
  void RunSteps(size_t first, size_t last, AppendedWork* appended, const RunOptions& options);
  void ReportGradients(size_t step, const RunOptions& options) const;
  std::unique_ptr<CapturedGraph> Record(size_t first, size_t last, AppendedWork* appended,
                                        const RunOptions& options);
  std::unique_ptr<CapturedGraph> EndCapture();
  void AbandonCapture() noexcept;
  // The stream for launches at present.
  Stream& stream() const;
  void BeginTiming(size_t index);
  void EndTiming(size_t index);
  void AddTimes();
  void ZeroOutputs(const KernelContext& context);
  // Returns the result of a host call; empty for other steps.
  std::vector<Shape> RunStep(size_t index, const RunOptions& options);

  std::shared_ptr<const Program> program_;
  Bindings bindings_;
  std::shared_ptr<void> arena_, workspace_;
  int64_t arena_bytes_ = 0, workspace_bytes_ = 0;  // may be more than the plan needs
  Memory offered_;
  std::shared_ptr<void> pass_numbers_;  // null if kernels use the context's numbers
  std::map<SegmentKey, Segment> segments_;
  // Steps are captured on a separate stream, because other nets in other threads may launch on the
  // compute stream.
  std::unique_ptr<Stream> capture_stream_;
  bool is_capturing_ = false;
  bool is_loading_ = false;  // this run loads code or captures a graph
  bool is_settled_ = false;
  std::string refused_because_;
  std::set<std::string> warned_;
  const double* recorded_loss_scale_ = nullptr;
  uint64_t recorded_work_ = 0;  // last result of the appended work's Prepare()
  std::vector<std::vector<uint64_t>>
      made_of_;                     // by copy: versions of the weights that it was computed from
  std::vector<uint64_t> versions_;  // of weights, by tensor, at the beginning of the run
  std::vector<Operands> operands_;  // by step
  std::vector<BoundOperand> bound_;
  std::vector<StepTime> step_times_;  // by step
  // A pair of events per step, and the steps that have run since times were last added up.
  std::vector<std::pair<std::unique_ptr<Event>, std::unique_ptr<Event>>> events_;
  std::vector<size_t> timed_;
  bool is_profiling_ = false;
};

}  // namespace caffe
