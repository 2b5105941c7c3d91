// What the commands that score models have in common.
#pragma once

#include <string>

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
  int iterations() const { return iterations_; }

 private:
  std::string models_, weights_, gpu_;
  int iterations_ = 50;
  NetFlags net_flags_;
  bool json_ = false;
};

}  // namespace caffe::tools
