#include "tools/caffe/scaling_options.hpp"

#include <charconv>

#include "caffe/core/quantity.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"

namespace caffe::tools {
namespace {

// More than any cluster has, but few enough to count their bytes exactly.
constexpr int kMostRanks = 1 << 24;
// The usual number in machines for training.
constexpr int kGpusPerMachine = 8;

int ParseRanks(const std::string& text) {
  int ranks = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, ranks);
  Require(error == std::errc() && rest == end && ranks >= 1 && ranks <= kMostRanks, "--ranks is '",
          text, "'; give numbers from 1 to ", kMostRanks,
          ", separated by commas, as in --ranks 8,64,256");
  return ranks;
}

}  // namespace

void ScalingFlags::Add(CLI::App& app) {
  app.add_option("--ranks", ranks_,
                 "Predict what training on so many ranks takes, instead of printing the plan; "
                 "several numbers make a table")
      ->type_name("N,N,...");
  app.add_option("--ranks_per_machine", ranks_per_machine_, "How many ranks share a machine")
      ->type_name("N")
      ->default_str("1; 8 GPUs");
  app.add_option(
         "--bandwidth", bandwidth_,
         "Bandwidth of the network, between one machine and the others in each direction: 50GB/s "
         "(bytes), 400Gb/s (bits)")
      ->type_name("NUMBER")
      ->default_str("one machine needs none");
  app.add_option("--latency", latency_, "Latency of a message between two machines: 5us, 0.1ms")
      ->type_name("NUMBER")
      ->default_str("one machine needs none");
  app.add_option("--bandwidth_within", bandwidth_within_,
                 "Bandwidth between one rank and the others of its machine in each direction")
      ->type_name("NUMBER")
      ->default_str("the chip's link; processors copy");
  app.add_option("--latency_within", latency_within_, "Latency of a message within a machine")
      ->type_name("NUMBER")
      ->default_str("the chip's link; processors: measured");
}

bool ScalingFlags::are_given() const {
  const bool has_others = !bandwidth_.empty() || !latency_.empty() || !bandwidth_within_.empty() ||
                          !latency_within_.empty() || ranks_per_machine_;
  Require(!ranks_.empty() || !has_others,
          "--bandwidth, --latency and --ranks_per_machine describe the ranks of a prediction, but "
          "--ranks is missing; give their number");
  return !ranks_.empty();
}

std::vector<int> ScalingFlags::Ranks() const {
  std::vector<int> ranks;
  for (const std::string& one : SplitByComma(ranks_)) ranks.push_back(ParseRanks(one));
  if (ranks.empty()) ParseRanks(ranks_);  // throws
  return ranks;
}

int ScalingFlags::RanksPerMachine(bool are_gpus) const {
  const int ranks = ranks_per_machine_.value_or(are_gpus ? kGpusPerMachine : 1);
  Require(ranks >= 1 && ranks <= kMostRanks, "--ranks_per_machine is ", ranks,
          "; give a number from 1 to ", kMostRanks);
  return ranks;
}

void ScalingFlags::Describe(int ranks, Network* network) const {
  const auto require = [&](const std::string& value, const char* flag, const char* example) {
    Require(!value.empty(), "--ranks is ", ranks, " with ", network->ranks_per_machine,
            " on a machine, but ", flag,
            " is missing; describe the network between machines, as in ", flag, " ", example,
            ", or raise --ranks_per_machine");
  };
  if (ranks > network->ranks_per_machine) {
    require(bandwidth_, "--bandwidth", "50GB/s");
    require(latency_, "--latency", "5us");
  }
  if (!bandwidth_.empty()) network->bandwidth = ParseBandwidth("--bandwidth", bandwidth_);
  if (!latency_.empty()) network->latency = ParseDuration("--latency", latency_);
  if (!bandwidth_within_.empty())
    network->bandwidth_within = ParseBandwidth("--bandwidth_within", bandwidth_within_);
  if (!latency_within_.empty())
    network->latency_within = ParseDuration("--latency_within", latency_within_);
}

}  // namespace caffe::tools
