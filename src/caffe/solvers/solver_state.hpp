// The solver's state as stored in snapshots, which makes a resumed run exact.
#pragma once

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
#include "caffe/solvers/stored_positions.hpp"

namespace caffe {

// The best test of a run by its metric; see ModelChoice.
struct BestTest {
  std::optional<double> metric;  // empty if no test had a finite value
  int iteration = -1;            // of that test
  int tests_since = 0;           // tests that did not improve by early_stopping_delta

  bool operator==(const BestTest&) const = default;
};

using History = std::vector<std::shared_ptr<Blob>>;

// Everything besides the weights that a run needs to continue.
struct SolverProgress {
  int iter = 0;
  int current_step = 0;
  PlateauState plateau;
  std::vector<float> recent_losses;  // the window of average_loss, oldest first
  std::string learned_net;           // file name of the weights
  ContentMark weights;               // of that file; 0 bytes if the state has none
  std::string solver_type;           // empty in files of other programs
  std::string net_name;
  std::string solver;     // see SolverIdentity(); empty in files of other programs
  uint64_t net_hash = 0;  // see NetIdentity()
  bool has_seed = false;
  uint64_t seed = 0;
  DeliveredRecords delivered_records;
  // Per test net; empty before the first test, and in files of earlier versions.
  std::vector<TestPosition> test_positions;
  ops::StepState gradient_scale;    // of gradient scaling: fields scale to skipped_in_a_row
  std::vector<float> larc_cosines;  // empty without larc_turbo
  BestTest best_test;
  // If the weights file holds an average: the parameters themselves, in the net's order, and the
  // number of updates in the average. When reading a state, SnapshotReader has them.
  History raw_parameters = {};
  int averaged_updates = 0;
};

// Creates the message of a binary state file, including its checksum.
SolverState MakeSolverState(const SolverProgress& progress, const History& history);
void WriteHdf5State(const SolverProgress& progress, const History& history, Hdf5Writer* file);

// Reads a state file (HDF5 if it ends in ".h5"); does not change blobs yet.
class SnapshotReader {
 public:
  // Throws IoError for a missing, damaged or other file; recognises a weights file.
  explicit SnapshotReader(const std::string& file);
  const SolverProgress& progress() const { return progress_; }
  // The weights file: at its recorded path, otherwise in the state file's folder. Empty if none is
  // recorded. Throws IoError naming both paths if it is missing, and if the weights there are not
  // those of this state.
  std::string WeightsFile() const;
  // These throw InvalidArgument if counts or shapes differ.
  void CheckHistory(const History& history) const;
  void ReadHistory(const History& history) const;
  // The same for the parameters of a run that averages them; does nothing if the state has none.
  void CheckRawParameters(const std::vector<Net::LearnableParam>& params) const;
  void ReadRawParameters(const std::vector<Net::LearnableParam>& params) const;

 private:
  void ReadHdf5();
  void ReadBinary();
  void Take(const SolverState& state);
  void Verify(uint64_t checksum) const;
  void VerifyTests(uint64_t checksum) const;  // 0 if the file has none
  void RequireChecksum(uint64_t found, uint64_t recorded) const;

  std::string file_;
  SolverProgress progress_;
  std::vector<BlobProto> history_, raw_parameters_;
};

}  // namespace caffe
