// What the commands that score models have in common.
#pragma once

#include <optional>
#include <string>

#include "caffe/epoch_batches.hpp"
#include "caffe/io/json.hpp"
#include "caffe/net.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/options.hpp"

namespace caffe::tools {

class ScoreCommand : public Command {
 public:
  explicit ScoreCommand(CLI::App& app);
  // Calls Score with each net of --model in turn: of phase TEST, with the weights of --weights.
  // With --json prints what Score put into `result`.
  void Run() override;

 protected:
  virtual void Score(Net& net, JsonObject* result) = 0;
  // Of the net that is scored: with --iterations=all, the batches of one pass over its data.
  int iterations() const { return epoch_ ? static_cast<int>(epoch_->count()) : iterations_; }
  // What a batch counts in a mean over all: its records, of which the last one may have fewer, or
  // 1; and the sum over all batches.
  double WeightOf(int batch) const {
    return epoch_ ? static_cast<double>(epoch_->RecordsOf(static_cast<uint64_t>(batch))) : 1;
  }
  double weights() const { return epoch_ ? static_cast<double>(epoch_->records) : iterations_; }

 private:
  std::string models_, weights_, gpu_;
  int iterations_ = 50;
  bool scores_all_ = false;
  std::optional<EpochBatches> epoch_;  // of the net that is scored
  NetFlags net_flags_;
  bool json_ = false;
};

}  // namespace caffe::tools
