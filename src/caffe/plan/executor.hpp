// Executor: runs a program. All memory is taken before the first step runs.
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

// Sums of a step's times, filled when profiling is on.
struct StepTime {
  double seconds = 0;
  int64_t runs = 0;
};

// Owns the program's arena and workspace. Not thread-safe. Run allocates nothing after its first
// call.
//
// On a device that can record work, steps between two calls of the host are recorded when they run
// for the second time, and from then on launched as one: the numbers that change from pass to pass
// are in device memory. `capture-graph` among the disabled passes switches that off.
class Executor {
 public:
  // Who waits for parameter gradients.
  struct GradientListener {
    // No later step of the run writes this one.
    std::function<void(const SyncedTensor& gradient)> on_final;
    // Nor does one use its parameter, which may change from now on. After on_final. May be empty.
    std::function<void(const SyncedTensor& gradient)> on_updatable;
    // Whether work elsewhere waits for this one: what is recorded and launched as one ends with it.
    std::function<bool(const SyncedTensor& gradient)> is_awaited;
  };

  explicit Executor(std::shared_ptr<const Program> program);

  // Memory of the tensors outside the arena. Before the first run, and whenever it has moved to
  // other SyncedTensors.
  void Bind(Bindings bindings);
  const Bindings& bindings() const { return bindings_; }

  struct RunOptions {
    // Nothing: forward, then backward through all layers.
    std::optional<Direction> direction = Direction::kForward;
    int first_layer = 0;  // inclusive
    int last_layer = -1;  // inclusive; -1: to the end
    RandomState random;
    // What losses are multiplied by in backward, in device memory. Null: by nothing.
    const double* loss_scale = nullptr;
    bool accumulate = false;  // add to parameter gradients instead of overwriting them
    const GradientListener* listener = nullptr;  // may be null
    // Called after each step with what it wrote; for looking for errors.
    std::function<void(const Program::Step&, std::span<const TensorView> outputs)> inspect;
    // What follows the last step. May be null.
    AppendedWork* appended = nullptr;
  };
  // A layer whose tops turned out to have other shapes than planned.
  struct ShapeChange {
    int layer = 0;
    std::vector<Shape> tops;
  };
  // Forward goes up from first_layer, backward comes down to it, or to layer 0 in a run of both. A
  // shape change stops the run before that layer has written anything.
  std::optional<ShapeChange> Run(const RunOptions& options);
  // The memory, also what was offered and not used yet, for a program that takes its place. The
  // next run of this one takes memory anew, unless it is offered some before.
  struct Memory {
    std::shared_ptr<void> arena, workspace;
    int64_t arena_bytes = 0, workspace_bytes = 0;
  };
  Memory ReleaseMemory();
  // What is too small is not used.
  void OfferMemory(Memory memory) { offered_ = std::move(memory); }
  // Copies of weights are made anew in the next run.
  void ForgetCopies();
  // Makes the copies that are missing, and those whose weights have changed.
  void PrepareCopies();
  // Uses the memory of the copies of another net with the same weights where they are equal, on
  // devices whose memory the host reads. Prepares the copies of both. A run that makes a shared
  // copy anew takes memory of its own for it.
  void ShareCopies(Executor& other);

  // Takes over what `previous`, with a program of the same net for other shapes from `layer` on,
  // computed before `layer` and what this one reads later.
  void TakeOver(const Executor& previous, int layer);

  // Copies of weights that outlive a run; see graph/weight_copies.hpp. A run first makes those anew
  // whose weights have changed since, as SyncedTensor::version() tells.
  struct KeptCopy {
    const SyncedTensor* weights = nullptr;
    SyncedTensor* copy = nullptr;
    bool operator==(const KeptCopy&) const = default;
  };
  // Conversions that steps read and that an update may write; none where the host can write memory
  // directly.
  std::vector<KeptCopy> KeptCopies() const;
  // Whether a copy is of the weights as they are.
  bool IsMade(const KeptCopy& copy) const;
  // Whoever has changed weights has written this copy of them, too.
  void MarkMade(const KeptCopy& copy);

  // Whether the last run with a listener only launched what had run before, as the next one like it
  // will. Other runs load code and make recordings, for which a device may wait until all that it
  // does is done. Where that is a reduction, it waits for other ranks in turn.
  bool is_settled() const { return is_settled_; }

  // Parameter gradients that backward writes, in the order in which they become final.
  std::vector<SyncedTensor*> Gradients() const;

  // Times of the program's steps, which then run one by one. On a GPU they are the device's own.
  void set_profiling(bool on) { is_profiling_ = on; }
  const std::vector<StepTime>& step_times() const { return step_times_; }
  // Stretches of steps that are launched as one by now.
  struct Captured {
    int stretches = 0;
    size_t nodes = 0;    // kernels, copies and fills of all of them
    int refused = 0;     // stretches that the device could not capture
    std::string reason;  // of the last refusal
  };
  Captured captured() const;
  const Program& program() const { return *program_; }

 private:
  struct Operands {
    std::vector<TensorView> inputs, outputs;
  };
  // An operand outside the arena; its address is asked for anew before each run, because its
  // owner may have reshaped, shared or written it since.
  struct BoundOperand {
    TensorView* view = nullptr;
    SyncedTensor* tensor = nullptr;
    int64_t offset = 0;  // in bytes
    bool is_output = false;
  };

  // Steps [first, last) of a run, none of which calls the host, and the appended work.
  struct Segment {
    bool has_run = false, cannot_be_recorded = false;
    std::unique_ptr<CapturedGraph> recorded;
  };
  struct SegmentKey {
    size_t first = 0, last = 0;
    bool accumulate = false, has_appended = false;
    auto operator<=>(const SegmentKey&) const = default;
  };
  // What kernels of a device that replays its work read in its memory.
  struct PassNumbers {
    uint64_t seed = 0, pass = 0;
  };

  // Tensors in the arena under names that two programs of one net agree on.
  std::map<std::string, int> ArenaTensors() const;
  TensorView ArenaView(int tensor) const;
  // What is computed before a layer's first step and read later.
  std::set<int> AliveBefore(int layer) const;

  void MakeCopies(const RunOptions& options);
  bool IsCurrent(size_t copy) const;
  // Others may be reading what stale copies share with them.
  void DetachStaleCopies();
  void MakeCopy(size_t index, const RunOptions& options);
  void Allocate();
  void BindOperands();
  void RefreshBoundOperands();
  void ForgetRecordings();
  void DropRecordingsOfOtherLossScale(const RunOptions& options);
  void PrepareAppended(const RunOptions& options);
  void SendPassNumbers(const RunOptions& options);
  // The steps that the options name, from the first to the last or to a shape change.
  std::optional<ShapeChange> RunPart(const RunOptions& options);
  void MarkOutputsWritten();
  bool IsPartOf(const Program::Step& step, const RunOptions& options) const;
  // Steps [first, last), and the appended work if there is one.
  void RunSegment(size_t first, size_t last, AppendedWork* appended, const RunOptions& options);
  void RunSteps(size_t first, size_t last, AppendedWork* appended, const RunOptions& options);
  void ReportGradients(size_t step, const RunOptions& options) const;
  std::unique_ptr<CapturedGraph> Record(size_t first, size_t last, AppendedWork* appended,
                                        const RunOptions& options);
  std::unique_ptr<CapturedGraph> EndCapture();
  void AbandonCapture() noexcept;
  // Where steps are launched now.
  Stream& stream() const;
  void BeginTiming(size_t index);
  void EndTiming(size_t index);
  void AddTimes();
  void ZeroOutputs(const KernelContext& context);
  // What a host call answered; nothing of other steps.
  std::vector<Shape> RunStep(size_t index, const RunOptions& options);

  std::shared_ptr<const Program> program_;
  Bindings bindings_;
  std::shared_ptr<void> arena_, workspace_;
  int64_t arena_bytes_ = 0, workspace_bytes_ = 0;  // may be more than the plan needs
  Memory offered_;
  std::shared_ptr<void> pass_numbers_;  // null where kernels see the context's
  std::map<SegmentKey, Segment> segments_;
  // Steps are captured on a stream that nobody else launches on: the compute stream may be that of
  // other nets, too, which run in other threads.
  std::unique_ptr<Stream> capture_stream_;
  bool is_capturing_ = false;
  bool is_loading_ = false;  // code or a recording, in this run
  bool is_settled_ = false;
  std::string refused_because_;
  std::set<std::string> warned_;
  const double* recorded_loss_scale_ = nullptr;
  uint64_t recorded_work_ = 0;  // what the appended work's Prepare() returned
  std::vector<std::vector<uint64_t>>
      made_of_;                     // by copy: the versions of the weights that it was made of
  std::vector<uint64_t> versions_;  // of weights, by tensor: as the run found them
  std::vector<Operands> operands_;  // by step
  std::vector<BoundOperand> bound_;
  std::vector<StepTime> step_times_;  // by step
  // One pair of events per step, and the steps that ran since times were added up.
  std::vector<std::pair<std::unique_ptr<Event>, std::unique_ptr<Event>>> events_;
  std::vector<size_t> timed_;
  bool is_profiling_ = false;
};

}  // namespace caffe
