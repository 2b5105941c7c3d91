#include "tests/fuzz/cluster/cluster_check.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>

#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solvers/solver_state.hpp"

namespace caffe::fuzz {
namespace {

constexpr int kMostRanks = 5;
constexpr int kIterations = 6;
constexpr int kLimitSeconds = 100;    // while ranks join, and for runs that must not fail
constexpr int kPromisedSeconds = 30;  // once ranks train
constexpr int kRepeatedSeeds = 16;    // one of this many is run twice

constexpr char kNet[] = R"(
  name: "cluster"
  layer { name: "records" type: "SimulatedRecords" top: "x" top: "t"
    dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 2 } } }
  layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "h"
    inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  MIDDLE
  layer { name: "tanh" type: "TanH" bottom: "h" top: "h" }
  layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "y"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

struct Variant {
  const char *solver, *net, *middle;  // between ip1 and tanh
};
constexpr Variant kVariantsOfNets[] = {
    {"momentum: 0.9 snapshot: 2", "", ""},
    {"type: 'Adam' iter_size: 2 snapshot: 3 test_iter: 3 test_interval: 2", "reduce_buckets: 2",
     ""},
    {"type: 'Nesterov' momentum: 0.5 snapshot: 1", "reduce_type: FLOAT16",
     "layer { name: 'norm' type: 'SyncBN' bottom: 'h' top: 'h' }"},
    {"momentum: 0.9 larc: true dialect: BVLC snapshot: 2 test_iter: 2 test_interval: 3", "",
     "layer { name: 'split' type: 'InnerProduct' bottom: 'h' top: 'h' parallel: SPLIT_OUTPUT "
     "inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } }"},
};

std::string Replaced(std::string text, const std::string& name, const std::string& value) {
  return text.replace(text.find(name), name.size(), value);
}

std::string Describe(const ClusterResult& result) {
  std::string text;
  for (size_t rank = 0; rank < result.ranks.size(); ++rank) {
    const RankResult& one = result.ranks[rank];
    text += StrCat("\n  rank ", rank, ": ",
                   !one.has_ended       ? "has not ended"
                   : !one.error.empty() ? one.error
                                        : "has trained");
  }
  return text;
}

// The rank that an error is about, or -1 if it names none.
int NamedRank(const std::string& error) {
  static const std::regex with_host("rank ([0-9]+) \\(host "),
      missing("within [0-9.]+ s \\(([0-9]+)"), root("rank [0-9]+, rank (0) at "),
      differs("rank ([0-9]+) differs from rank 0");
  std::smatch match;
  for (const std::regex* pattern : {&differs, &with_host, &missing, &root}) {
    if (std::regex_search(error, match, *pattern)) return std::stoi(match[1]);
  }
  return -1;
}

// A rank that joined when rank 0 was about to end is referred to rank 0's error, which has to name
// the failed rank.
bool SendsToRank0(const std::string& error) {
  return error.find("its own message says why") != std::string::npos;
}

bool MustNotBeNoticed(Fault::Kind kind) {
  return kind == Fault::kNone || kind == Fault::kPause || kind == Fault::kOutage;
}

// Returns whether the rank, which may lack information that the others have, may name another one.
bool MayNameAny(const Fault& fault, int rank) {
  switch (fault.kind) {
    case Fault::kCut:
    case Fault::kStop:
    case Fault::kError:
    case Fault::kFullDisk:
      return rank == fault.rank;
    case Fault::kPairCut:
    case Fault::kReset:
      return rank == fault.rank || rank == fault.other;
    default:
      return false;
  }
}

bool MayBeNamed(const Fault& fault, int named) {
  const bool are_two = fault.kind == Fault::kPairCut || fault.kind == Fault::kReset;
  return named == fault.rank || (are_two && named == fault.other);
}

bool HasGone(const Fault& fault, int rank) {
  return rank == fault.rank && (fault.kind == Fault::kKill || fault.kind == Fault::kPowerCut);
}

// Returns a finding, or nothing. A rank may finish all its work before it learns of a fault.
std::string FaultyEnd(const Fault& fault, const ClusterResult& result,
                      const std::string& expected) {
  if (!result.have_all_ended) return "it hangs";
  int first_named = -1;
  for (int rank = 0; rank < static_cast<int>(result.ranks.size()); ++rank) {
    const RankResult& one = result.ranks[rank];
    if (HasGone(fault, rank)) continue;
    if (one.error.empty()) {
      if (one.weights != expected) return StrCat("rank ", rank, " has other weights");
      continue;
    }
    if (MustNotBeNoticed(fault.kind)) return StrCat("rank ", rank, " fails");
    if (!result.has_struck) return StrCat("rank ", rank, " fails before anything has happened");
    if (MayNameAny(fault, rank) || (rank != 0 && SendsToRank0(one.error))) continue;
    const int named = NamedRank(one.error);
    if (!MayBeNamed(fault, named)) return StrCat("rank ", rank, " names rank ", named);
    if (first_named >= 0 && named != first_named) return "they name different ranks";
    first_named = named;
  }
  if (result.had_all_joined && result.seconds > kPromisedSeconds && !MustNotBeNoticed(fault.kind)) {
    return StrCat("it takes ", result.seconds, " s");
  }
  return "";
}

// Checks that an error of a layer or of the disk reaches all ranks with its text.
std::string TextMissing(const Fault& fault, const ClusterResult& result) {
  const char* const text = fault.kind == Fault::kError      ? "record 7 is damaged"
                           : fault.kind == Fault::kFullDisk ? "No space left"
                                                            : "";
  for (const RankResult& one : result.ranks) {
    if (!one.error.empty() && one.error.find(text) == std::string::npos) {
      return StrCat("'", text, "' is not what they say");
    }
  }
  return "";
}

// If an error is planted, chooses a kind of fault that reveals it.
Fault::Kind ChooseKind(Plant plant, RandomNumbers* random) {
  switch (plant) {
    case Plant::kKeepsErrorToItself:
      return Fault::kError;
    case Plant::kIgnoresLoss:
    case Plant::kRecordShift:
      return Fault::kKill;
    case Plant::kNamesFilesAtOnce:
    case Plant::kNoSynchronization:
      return Fault::kPowerCut;
    default:
      return static_cast<Fault::Kind>(random->Between(1, Fault::kKinds - 1));
  }
}

Fault MakeFault(Plant plant, const ClusterResult& undisturbed, RandomNumbers* random) {
  const int ranks = static_cast<int>(undisturbed.ranks.size());
  Fault fault;
  fault.kind = ChooseKind(plant, random);
  fault.rank = fault.kind == Fault::kPowerCut && plant != Plant::kNone ? 0 : random->Below(ranks);
  if (fault.kind == Fault::kDiverge) fault.rank = random->Between(1, ranks - 1);
  if (fault.kind == Fault::kFullDisk) fault.rank = 0;
  fault.other = (fault.rank + random->Between(1, ranks - 1)) % ranks;
  if (fault.rank == 0 && random->Chance(0.5)) fault.calls = Simulation::Calls::kOnDisk;
  fault.call =
      1 + random->Below(fault.calls == Simulation::Calls::kOnDisk ? undisturbed.calls_on_disk
                                                                  : undisturbed.calls[fault.rank]);
  fault.duration = random->Between(1, 80) * kSecond / 10;
  fault.pass = random->Below(kIterations);
  return fault;
}

}  // namespace

ClusterChecker::ClusterChecker(std::string folder) : folder_(std::move(folder)) {
  std::filesystem::create_directory(folder_);
  for (int variant = 0; variant < kVariants; ++variant) {
    for (int ranks = 1; ranks <= kMostRanks; ++ranks) Expected(variant, ranks);
  }
}

SolverParameter ClusterChecker::SolverOf(int variant) const {
  const Variant& one = kVariantsOfNets[variant];
  const std::string net = Replaced(kNet, "MIDDLE", one.middle);
  SolverParameter solver;
  ParseTextProto(StrCat("solver_mode: CPU random_seed: 7 base_lr: 0.05 lr_policy: 'fixed' "
                        "watchdog: 'off' max_iter: ",
                        kIterations, " snapshot_prefix: '", folder_, "/run' ", one.solver,
                        " net_param { ", one.net, net, " }"),
                 "cluster", &solver);
  return solver;
}

const std::string& ClusterChecker::Expected(int variant, int ranks) {
  std::string& weights = expected_[{variant, ranks}];
  if (weights.empty()) {
    weights = WeightsOfThreads(SolverOf(variant), ranks);
    EmptyFolder();
  }
  return weights;
}

void ClusterChecker::EmptyFolder() const {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::filesystem::remove_all(entry.path());
  }
}

// Describes a file that has a snapshot's name but is incomplete; empty if there is none.
std::string ClusterChecker::TornSnapshot() const {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string file = entry.path().string(), ending = entry.path().extension().string();
    try {
      if (ending == ".solverstate") SnapshotReader(file).WeightsFile();
      if (ending != ".caffemodel") continue;
      NetParameter net;
      ReadBinaryProto(file, &net);
      if (net.layer_size() == 0) return file + " has no layers";
    } catch (const Error& error) {
      return error.what();
    }
  }
  return "";
}

ClusterOptions ClusterChecker::MakeOptions(uint64_t seed, int variant) const {
  RandomNumbers random(seed);
  ClusterOptions options;
  options.solver = SolverOf(variant);
  options.ranks = random.Between(2, kMostRanks);
  Simulation::Options& simulation = options.simulation;
  simulation.seed = random.Next();
  simulation.interruptions = random.Pick({0.0, 0.1, 0.5});
  simulation.disk_folder = folder_;
  SimulatedNetwork::Options& network = simulation.network;
  network.most_delay = random.Pick({30'000, 1'000'000, 100'000'000});
  network.most_bytes = random.Pick({7, 100, 65536});
  network.buffer = random.Pick({50, 1000, 1 << 18});
  network.resets_lose_packets = random.Chance(0.25);
  return options;
}

ClusterReport ClusterChecker::Check(uint64_t seed, Plant plant) {
  RandomNumbers random(~seed);
  const int variant = random.Below(kVariants);
  ClusterOptions options = MakeOptions(seed, variant);
  options.plant = plant;
  options.simulation.disk.names_files_at_once = plant == Plant::kNamesFilesAtOnce;
  options.simulation.disk.ignores_synchronization = plant == Plant::kNoSynchronization;
  const std::string& expected = Expected(variant, options.ranks);
  ClusterReport report;
  const auto finish = [&](const std::string& what, const ClusterResult& result,
                          const std::string& why) {
    EmptyFolder();
    if (!why.empty()) report.finding = StrCat(what, ": ", why, Describe(result));
    return report;
  };

  EmptyFolder();
  const ClusterResult undisturbed = RunCluster(options, kLimitSeconds);
  const std::string why = FaultyEnd(options.fault, undisturbed, expected);
  if (!why.empty()) return finish("undisturbed", undisturbed, why);
  if (seed % kRepeatedSeeds == 0) {
    EmptyFolder();
    const ClusterResult again = RunCluster(options, kLimitSeconds);
    if (again.trace != undisturbed.trace) {
      return finish("undisturbed", again, "the same seed does something else");
    }
  }

  options.fault = MakeFault(plant, undisturbed, &random);
  if (options.fault.kind == Fault::kFullDisk) {
    options.simulation.disk.full_from = random.Below(undisturbed.calls_on_disk);
    options.simulation.disk.full_for = random.Between(1, 20);
  }
  EmptyFolder();
  ClusterResult result = RunCluster(options, kLimitSeconds);
  if (options.fault.kind == Fault::kFullDisk || options.fault.kind == Fault::kError) {
    result.has_struck =
        std::ranges::any_of(result.ranks, [](const RankResult& one) { return !one.error.empty(); });
  }
  if (options.fault.kind == Fault::kReset) options.fault.other = result.other;
  report.fault = options.fault.kind;
  report.has_struck = result.has_struck;
  const std::string what = StrCat(NameOf(options.fault.kind), " of rank ", options.fault.rank);
  std::string faulty = FaultyEnd(options.fault, result, expected);
  if (faulty.empty()) faulty = TextMissing(options.fault, result);
  if (faulty.empty()) faulty = TornSnapshot();
  if (!faulty.empty()) return finish(what, result, faulty);

  ClusterOptions resumed = options;
  resumed.fault = {};
  resumed.simulation.seed = random.Next();
  resumed.simulation.disk.full_from = -1;
  if (plant == Plant::kNone && random.Chance(0.3)) resumed.ranks = random.Between(2, kMostRanks);
  const ClusterResult end = RunCluster(resumed, kLimitSeconds);
  const bool has_all = resumed.ranks == options.ranks;
  const std::string& wanted = has_all ? expected : end.ranks[0].weights;
  return finish(StrCat("resumed by ", resumed.ranks, " ranks after ", what), end,
                FaultyEnd(resumed.fault, end, wanted));
}

}  // namespace caffe::fuzz
