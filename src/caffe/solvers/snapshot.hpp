// Solver state on disk: names, contents, and what makes a resumed run exact.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/export.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/step_rules.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/solvers/schedule.hpp"

namespace caffe {

// Everything a run continues from, beside the weights.
struct SolverProgress {
  int iter = 0;
  int current_step = 0;
  PlateauState plateau;
  std::vector<float> recent_losses;  // the window of average_loss, oldest first
  std::string learned_net;           // file name of the weights
  std::string solver_type;           // empty in files of other programs
  std::string net_name;
  bool has_seed = false;
  uint64_t seed = 0;
  std::map<std::string, uint64_t> delivered_records;  // per data layer
  ops::StepState gradient_scale;    // of gradient scaling: scale to skipped_in_a_row
  std::vector<float> larc_cosines;  // empty without larc_turbo
};

// The prefix that BVLC's rules give: the field; in a folder, the solver file's stem; by default the
// solver file without its extension.
CAFFE_EXPORT std::string SnapshotPrefix(const SolverParameter& param,
                                        const std::string& solver_file);

// Throws IoError when no file can be made at the prefix, by making one and removing it. Removes
// what killed runs with this prefix left half-written; a living one's files stay.
CAFFE_EXPORT void CheckSnapshotWritable(const std::string& prefix);

// Throws InvalidArgument when weights or history of so many bytes are too much for binary files.
void CheckSnapshotFits(uint64_t weight_bytes, uint64_t history_bytes);

// Writes model and state: both or, when one cannot be written, neither. Returns the state file's
// name.
std::string WriteSnapshot(const std::string& prefix, bool as_hdf5, bool write_diff, const Net& net,
                          const std::vector<std::shared_ptr<Blob>>& history,
                          SolverProgress progress);

// What a binary state file holds.
SolverState MakeSolverState(const SolverProgress& progress,
                            const std::vector<std::shared_ptr<Blob>>& history);

// Reads a state file (by its ".h5" ending) without touching the blobs yet.
class SnapshotReader {
 public:
  // `name` is for errors.
  SnapshotReader(const std::string& name, const SolverState& state) : file_(name) { Take(state); }
  // Throws IoError for a missing, torn or different file; a weights file is recognised.
  explicit SnapshotReader(const std::string& file);
  const SolverProgress& progress() const { return progress_; }
  // The weights file: as recorded, else beside the state file. Empty when none is recorded. Throws
  // IoError naming both places.
  std::string WeightsFile() const;
  // Throw InvalidArgument when counts or shapes differ.
  void CheckHistory(const std::vector<std::shared_ptr<Blob>>& history) const;
  void ReadHistory(const std::vector<std::shared_ptr<Blob>>& history) const;

 private:
  void ReadHdf5();
  void ReadBinary();
  void Take(const SolverState& state);

  std::string file_;
  SolverProgress progress_;
  std::vector<BlobProto> history_;
};

}  // namespace caffe
