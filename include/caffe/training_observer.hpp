// TrainingObserver: receives progress reports of training, for logs, displays and files.
//
//     struct Curve final : caffe::TrainingObserver {
//       void OnIteration(const caffe::IterationReport& report) override {
//         losses.push_back(report.smoothed_loss);
//       }
//       std::vector<float> losses;
//     };
//     Curve curve;
//     solver.AddObserver(&curve);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

class Solver;

struct TrainingStart {
  Solver* solver = nullptr;  // alive until OnEnd; observers must not train it
  int iteration = 0;         // first iteration
  int stop = 0;              // iteration before which training ends
  int workers = 1;
  uint64_t seed = 0;         // of fillers, dropout and data order
  std::string resumed_from;  // the snapshot; empty for a new run
};

// Training speed over some iterations, not counting tests and snapshots.
struct CAFFE_EXPORT TrainingSpeed {
  int iterations = 0;
  double seconds = 0;
  double images = 0;  // over all workers; 0: unknown
  // Time that the net waited for its data layers; empty if no layer measures it.
  std::optional<double> data_wait_seconds;

  void Add(const TrainingSpeed& more);
  std::optional<double> ImagesPerSecond() const;
  // 0 to 1.
  std::optional<double> DataWaitShare() const;
};

// All values of one output blob of a net.
struct OutputReport {
  std::string name;
  float loss_weight = 0;
  std::vector<float> values;
};

struct DisplayReport {
  int iteration = 0;
  int iterations = 0;  // since the previous display
  double seconds = 0;  // since the previous display, including tests and snapshots
  float smoothed_loss = 0;
  std::vector<OutputReport> outputs;
};

// Distribution of LARC's local rates over the parameters: each parameter's rate as a multiple of
// the schedule's learning rate.
struct LarcReport {
  double smallest = 0, median = 0, largest = 0;
};

// Measurements of one update.
struct StepReport {
  // L2 norm of all gradients together, unscaled and before clipping: the number that clip_gradients
  // is compared with. With iter_size it is the norm of their sum.
  std::optional<double> gradient_norm;
  // Updates that adaptive gradient scaling has skipped since training began.
  std::optional<int64_t> skipped_steps;
  std::optional<LarcReport> larc;
};

struct IterationReport {
  int iteration = 0;
  // Passes over the data so far, if the size of the data is known.
  std::optional<double> epoch;
  float loss = 0;
  float smoothed_loss = 0;
  double learning_rate = 0;
  std::optional<double> gradient_scale;  // with gradient scaling
  // Only for displayed iterations, if measured.
  StepReport step;
  TrainingSpeed speed;  // since the previous iteration
  bool is_displayed = false;
};

// The detections of a test net's output blob.
struct DetectionReport {
  std::string name;
  double mean_average_precision = 0;
  std::vector<std::pair<int, double>> average_precisions;  // by label
};

struct TestReport {
  int iteration = 0;
  int net = 0;                        // index
  double loss = 0;                    // the mean over the batches
  std::vector<OutputReport> outputs;  // means over the batches; empty with eval_type: "detection"
  std::vector<DetectionReport> detections;
};

struct SnapshotReport {
  int iteration = 0;  // next iteration of training
  std::string state_file;
};

struct TrainingEnd {
  enum Reason { kFinished, kStopped, kFailed, kEarlyStopping };
  int iteration = 0;  // next iteration, had training continued
  Reason reason = kFinished;
  std::string error;  // if training failed
};

// Called in the training thread. The solver of a worker other than 0 does not call its observers.
// An exception ends training, except from OnEnd, which must not throw.
class CAFFE_EXPORT TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  // Called around each Solve() and Step().
  virtual void OnStart(const TrainingStart&) {}
  virtual void OnEnd(const TrainingEnd&) {}
  // Called when the losses of a displayed iteration are available, before its update.
  virtual void OnDisplay(const DisplayReport&) {}
  // Called once per iteration and in order. A GPU's losses arrive late, so the solver may already
  // be at the next iteration, except for displayed ones.
  virtual void OnIteration(const IterationReport&) {}
  virtual void OnTest(const TestReport&) {}
  virtual void OnSnapshot(const SnapshotReport&) {}
};

}  // namespace caffe
