// The solver's state as snapshots hold it: what makes a resumed run exact.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/io/content_mark.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/step_rules.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/solvers/schedule.hpp"

namespace caffe {

// The best test of a run by its metric; see ModelChoice.
struct BestTest {
  std::optional<double> metric;  // none where no test had a number
  int iteration = -1;            // of that test
  int tests_since = 0;           // that were not better by early_stopping_delta

  bool operator==(const BestTest&) const = default;
};

using History = std::vector<std::shared_ptr<Blob>>;

// Everything a run continues from, beside the weights.
struct SolverProgress {
  int iter = 0;
  int current_step = 0;
  PlateauState plateau;
  std::vector<float> recent_losses;  // the window of average_loss, oldest first
  std::string learned_net;           // file name of the weights
  ContentMark weights;               // of that file; no bytes where the state does not tell
  std::string solver_type;           // empty in files of other programs
  std::string net_name;
  std::string solver;     // see SolverIdentity(); empty in files of other programs
  uint64_t net_hash = 0;  // see NetIdentity()
  bool has_seed = false;
  uint64_t seed = 0;
  std::map<std::string, uint64_t> delivered_records;  // per data layer
  ops::StepState gradient_scale;    // of gradient scaling: scale to skipped_in_a_row
  std::vector<float> larc_cosines;  // empty without larc_turbo
  BestTest best_test;
  // Where the weights file holds an average: the parameters themselves, in the net's order, and how
  // many updates the average has followed. Of a state that is read, SnapshotReader has them.
  History raw_parameters = {};
  int averaged_updates = 0;
};

// What a binary state file holds, with a checksum of all of it.
SolverState MakeSolverState(const SolverProgress& progress, const History& history);
void WriteHdf5State(const SolverProgress& progress, const History& history, Hdf5Writer* file);

// Reads a state file (by its ".h5" ending) without touching the blobs yet.
class SnapshotReader {
 public:
  // Throws IoError for a missing, damaged or different file; a weights file is recognised.
  explicit SnapshotReader(const std::string& file);
  const SolverProgress& progress() const { return progress_; }
  // The weights file: as recorded, else beside the state file. Empty when none is recorded. Throws
  // IoError naming both places, and where the weights there are not those of this state.
  std::string WeightsFile() const;
  // Throw InvalidArgument when counts or shapes differ.
  void CheckHistory(const History& history) const;
  void ReadHistory(const History& history) const;
  // The same for the parameters of a run that averages them; nothing where the state has none.
  void CheckRawParameters(const std::vector<Net::LearnableParam>& params) const;
  void ReadRawParameters(const std::vector<Net::LearnableParam>& params) const;

 private:
  void ReadHdf5();
  void ReadBinary();
  void Take(const SolverState& state);
  void Verify(uint64_t checksum) const;

  std::string file_;
  SolverProgress progress_;
  std::vector<BlobProto> history_, raw_parameters_;
};

}  // namespace caffe
