#include "tests/fuzz/cluster/cluster_run.hpp"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "caffe/distributed/tcp_communicator.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solver_group.hpp"
#include "tests/fuzz/cluster/records_layer.hpp"

namespace caffe::fuzz {
namespace {

// Longer than the default time that a rank may be silent, so that rank 0 says who is missing.
constexpr double kJoinSeconds = 30;

std::string WeightsOf(const Net& net) {
  std::string bytes;
  for (size_t layer = 0; layer < net.layers().size(); ++layer) {
    for (const auto& blob : net.layer_params(static_cast<int>(layer))) {
      bytes.append(reinterpret_cast<const char*>(blob->cpu_data()),
                   static_cast<size_t>(blob->count()) * sizeof(float));
    }
  }
  return bytes;
}

RendezvousOptions MembershipOf(int rank, int ranks) {
  RendezvousOptions options;
  options.rank = rank;
  options.ranks = ranks;
  options.root = {{SimulatedNetwork::AddressOf(0), 29500}};
  options.secret = "open sesame";
  options.version = "1";
  options.join_seconds = kJoinSeconds;
  options.doing = [] { return std::string("trains"); };
  return options;
}

// State shared by a run's processes and its faults; it lives as long as a thread may access it.
struct Cluster {
  ClusterOptions options;
  ClusterResult result;
  Simulation* simulation = nullptr;
  int64_t limit = 0, struck_at = 0;

  void Train(int rank);
  void TrainTogether(int rank);
  void Strike();
  void CutFromAll(int rank);
  void PlantFault();
};

// The process of a rank.
void Cluster::Train(int rank) {
  RankResult& own = result.ranks[rank];
  omp_set_num_threads(1);
  try {
    TrainTogether(rank);
  } catch (const std::exception& error) {
    own.error = error.what();
    if (own.error.empty()) own.error = "an error without a text";
  }
  own.has_ended = true;
}

void Cluster::TrainTogether(int rank) {
  RankResult& own = result.ranks[rank];
  std::shared_ptr<Communicator> communicator =
      WithPlant(options.plant, MakeTcpCommunicator(MembershipOf(rank, options.ranks)));
  own.has_joined = true;
  Solver solver(options.solver, {.keep_all = false, .communicator = communicator});
  const Fault& fault = options.fault;
  if (fault.kind == Fault::kDiverge && fault.rank == rank) {
    solver.AddCallbacks({.on_start = [&] {
      if (solver.iter() != fault.pass) return;
      Strike();
      solver.net().learnable_params()[0].blob->mutable_cpu_data()[0] += 1;
    }});
  }
  const std::string newest = rank == 0 ? NewestSnapshot(options.solver, "") : "";
  solver.Solve(newest);
  own.weights = WeightsOf(solver.net());
}

void Cluster::CutFromAll(int rank) {
  for (int other = 0; other < options.ranks; ++other) {
    if (other != rank) simulation->network().Cut(rank, other);
  }
}

// Applies the fault now.
void Cluster::Strike() {
  const Fault& fault = options.fault;
  result.has_struck = true;
  result.had_all_joined =
      std::ranges::all_of(result.ranks, [](const RankResult& one) { return one.has_joined; });
  struck_at = simulation->now();
  simulation->EndAt(struck_at + limit);
  switch (fault.kind) {
    case Fault::kKill:
      simulation->Kill(fault.rank);
      break;
    case Fault::kPowerCut:
      CutFromAll(fault.rank);
      simulation->Stop(fault.rank, [this] {
        simulation->disk().Exit(options.fault.rank);
        if (options.fault.rank == 0) simulation->disk().CutPower();
      });
      break;
    case Fault::kStop:
      simulation->Stop(fault.rank);
      break;
    case Fault::kPause:
      simulation->Pause(fault.rank, fault.duration);
      break;
    case Fault::kCut:
      CutFromAll(fault.rank);
      break;
    case Fault::kOutage:
      CutFromAll(fault.rank);
      simulation->At(struck_at + fault.duration, [this] {
        for (int other = 0; other < options.ranks; ++other) {
          simulation->network().Mend(options.fault.rank, other);
        }
      });
      break;
    case Fault::kPairCut:
      simulation->network().Cut(fault.rank, fault.other);
      break;
    case Fault::kReset:
      result.other = simulation->network().ResetOne(fault.rank);
      break;
    default:
      break;
  }
}

void Cluster::PlantFault() {
  const Fault& fault = options.fault;
  the_record_faults = {};
  if (options.plant == Plant::kRecordShift) the_record_faults.shift = 1;
  if (fault.kind == Fault::kError) {
    the_record_faults.failing_rank = fault.rank;
    the_record_faults.failing_pass = fault.pass;
  } else if (fault.kind != Fault::kNone && fault.kind != Fault::kDiverge &&
             fault.kind != Fault::kFullDisk) {
    simulation->AtCall(fault.rank, fault.calls, fault.call, [this] { Strike(); });
  }
}

}  // namespace

const char* NameOf(Fault::Kind kind) {
  constexpr const char* kNames[Fault::kKinds] = {"none",  "kill",  "power cut",  "stop",
                                                 "pause", "cut",   "outage",     "cut of a pair",
                                                 "reset", "error", "divergence", "full disk"};
  return kNames[kind];
}

ClusterResult RunCluster(const ClusterOptions& options, int limit_seconds) {
  const auto cluster = std::make_shared<Cluster>();
  cluster->options = options;
  cluster->limit = limit_seconds * kSecond;
  cluster->result.ranks.resize(options.ranks);
  Simulation simulation(options.simulation);
  cluster->simulation = &simulation;
  for (int rank = 0; rank < options.ranks; ++rank) {
    // Threads that never end keep the objects that they use.
    simulation.AddProcess([cluster, rank, late = simulation.random().Below(2000)] {
      std::this_thread::sleep_for(std::chrono::milliseconds(late));
      cluster->Train(rank);
    });
  }
  cluster->PlantFault();
  ClusterResult& result = cluster->result;
  simulation.EndAt(simulation.now() + cluster->limit);
  bool have_ended = simulation.Run();
  result.seconds = (simulation.now() - cluster->struck_at) / kSecond;
  if (have_ended && options.fault.kind == Fault::kStop && result.has_struck) {
    simulation.Continue(options.fault.rank);
    simulation.EndAt(simulation.now() + cluster->limit);
    have_ended = simulation.Run();
  }
  result.have_all_ended = have_ended;
  for (int rank = 0; rank < options.ranks; ++rank) {
    result.calls.push_back(simulation.calls(rank));
  }
  result.calls_on_disk = simulation.calls(0, Simulation::Calls::kOnDisk);
  result.trace = simulation.trace();
  the_record_faults = {};
  return result;
}

std::string WeightsOfThreads(const SolverParameter& solver, int ranks) {
  SolverGroup group(solver, {.keep_all = false}, ranks);
  group.Solve();
  return WeightsOf(group.solver(0).net());
}

}  // namespace caffe::fuzz
