// Base of the commands that score models.
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
  // Batches to score; with --iterations=all, those of one pass over the data.
  int iterations() const { return epoch_ ? static_cast<int>(epoch_->count()) : iterations_; }
  // The weight of a batch in a mean over all batches: with --iterations=all its number of records,
  // which may be smaller in the last batch, else 1. weights() is the sum over all batches.
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
