// RunFolder: one folder with all outputs of a training run; see docs/runs.md.
//
//     caffe::RunFolder run("runs/first");
//     caffe::Solver solver(param, {.trace = run.trace()});
//     solver.AddObserver(&run);
//     solver.Solve();
#pragma once

#include <memory>
#include <string>

#include "caffe/export.hpp"
#include "caffe/trace.hpp"
#include "caffe/training_observer.hpp"

namespace caffe {

// Must outlive the solvers that it observes. Output that cannot be written during training is
// skipped, with one warning in the log.
class CAFFE_EXPORT RunFolder final : public TrainingObserver {
 public:
  struct Options {
    // The folder may hold the run that is resumed.
    bool resumes = false;
    // Iterations between histograms of the parameters; 0: none.
    int histograms = 0;
  };

  // Creates the folder. Throws IoError if that fails or another process writes to it, and
  // InvalidArgument if it already holds a run.
  explicit RunFolder(const std::string& path) : RunFolder(path, Options()) {}
  RunFolder(const std::string& path, const Options& options);
  // Writes the timeline; all training must have ended.
  ~RunFolder() override;
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // For SolverOptions: collects the events of the run folder's timeline.
  Trace* trace();

  // Writes an error to the folder's log. Training that has started does so itself.
  void Fail(const std::string& error);

  void OnStart(const TrainingStart& start) override;
  void OnDisplay(const DisplayReport& report) override;
  void OnIteration(const IterationReport& report) override;
  void OnTest(const TestReport& report) override;
  void OnSnapshot(const SnapshotReport& report) override;
  void OnEnd(const TrainingEnd& end) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caffe
