#include <glog/logging.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "caffe/common.hpp"
#include "caffe/core/activity.hpp"
#include "caffe/device/device.hpp"
#include "caffe/distributed/gpu_communicators.hpp"
#include "caffe/distributed/mpi_module.hpp"
#include "caffe/distributed/rendezvous.pb.h"
#include "caffe/distributed/rendezvous/proof.hpp"
#include "caffe/distributed/rendezvous/secret.hpp"
#include "caffe/distributed/tcp_communicator.hpp"
#include "caffe/error.hpp"
#include "caffe/ranks.hpp"

namespace caffe {

namespace {

constexpr double kLongestWait = 1e7;  // seconds, a third of a year

// Each other rank takes up to three descriptors.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // if this fails, running out of descriptors is reported
}

// Describes what this process computes, tests, writes or waits for: the activity of a thread that
// does more than prepare data.
std::string WhatIsDone() {
  for (const Activity::Report& report : Activity::LongerThan(0)) {
    if (!report.text.starts_with("reader:") && !report.text.starts_with("parser:")) {
      return report.text;
    }
  }
  return "";
}

// Throws unless all ranks are on the CPU, or each is on a GPU of its own.
void CheckDevices(Communicator& communicator, const std::optional<int>& gpu) {
  const auto name = [](const std::string& device) { return device.empty() ? "the CPU" : "a GPU"; };
  const std::string own = gpu ? MakeDevice(DeviceKind::kCuda, *gpu)->identity() : "";
  const std::vector<std::string> devices = communicator.AllGather(own);
  std::map<std::string, size_t> rank_of;
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    const std::string& device = devices[rank];
    Require(device.empty() == devices[0].empty(), "rank ", rank, " trains on ", name(device),
            ", but rank 0 on ", name(devices[0]), "; give all ranks --gpu, or none");
    const auto [first, is_first] = rank_of.emplace(device, rank);
    Require(device.empty() || is_first, "ranks ", first->second, " and ", rank,
            " train on the same GPU (", device,
            "); give each a GPU of its own: start as many ranks on a machine as it has GPUs");
  }
}

RendezvousOptions CommonOptions(const RankOptions& options) {
  RendezvousOptions common;
  common.rank = options.rank;
  common.ranks = options.ranks;
  common.version = Version();
  common.run = options.run;
  common.join_seconds = std::min(options.join_seconds, kLongestWait);
  common.doing = WhatIsDone;
  return common;
}

std::shared_ptr<Communicator> JoinByTcp(const RankOptions& options) {
  RendezvousOptions rendezvous = CommonOptions(options);
  Require(!options.store.empty(),
          "it is not known where rank 0 runs; give all ranks its host and a free port there, as in "
          "--store node1:29500");
  rendezvous.root = {ParseAddress(options.store)};
  Require(rendezvous.root[0].port != 0, "the store is '", options.store,
          "'; all ranks need to know its port");
  rendezvous.secret = options.secret.empty() ? SecretOfUser() : options.secret;
  return MakeTcpCommunicator(std::move(rendezvous));
}

// Opens rank 0's port and broadcasts where it is.
RendezvousOptions MeetByMpi(const MpiModule& mpi, const RankOptions& options) {
  RendezvousOptions rendezvous = CommonOptions(options);
  rendezvous.run.clear();  // the secret identifies the run
  rendezvous.ranks_run = true;
  const bool is_one_machine = options.local_ranks == options.ranks;
  distributed::MeetingPoint point;
  if (options.rank == 0) {
    const std::string listens_on = is_one_machine ? "127.0.0.1" : "";
    rendezvous.root_port = std::make_shared<Socket>(Socket::Listen({listens_on, 0}));
    point.set_host(rendezvous.host);
    if (!is_one_machine) {
      for (const std::string& address : AddressesOfMachine()) point.add_addresses(address);
    }
    point.set_port(rendezvous.root_port->port());
    point.set_secret(MakeNonce());
  }
  const std::string received = mpi.Broadcast(point.SerializeAsString(), rendezvous.join_seconds);
  CAFFE_ASSERT(point.ParseFromString(received));
  if (is_one_machine || point.host() == rendezvous.host)
    rendezvous.root.push_back({"127.0.0.1", point.port()});
  for (const std::string& address : point.addresses())
    rendezvous.root.push_back({address, point.port()});
  Require(!rendezvous.root.empty(), "the machine of rank 0, ", point.host(),
          ", has no address in a network");
  rendezvous.secret = point.secret();
  return rendezvous;
}

std::shared_ptr<Communicator> JoinByMpi(const MpiModule& mpi, const MpiWorld& world,
                                        const RankOptions& options) try {
  Require(world.rank == options.rank && world.ranks == options.ranks,
          "transport mpi: MPI has started this process as ", world.rank, " of ", world.ranks,
          ", but it is rank ", options.rank, " of ", options.ranks,
          "; start the ranks by mpirun, or by srun with a PMI that the MPI library knows, and give "
          "no --rank");
  return MakeMpiCommunicator(MeetByMpi(mpi, options), mpi);
} catch (...) {
  mpi.Abandon();
  throw;
}

// The module of the MPI that carries this run's messages; null if that is TCP.
const MpiModule* FindMpi(const RankOptions& options) {
  const bool is_launched = options.launcher == "mpirun" || options.launcher == "srun";
  if (options.transport == "tcp") return nullptr;
  if (options.transport == "auto" && (!is_launched || !options.store.empty())) return nullptr;
  Require(options.store.empty() || options.launcher.empty(),
          "transport mpi needs no store, but it is '", options.store,
          "'; leave one of the two out");
  std::string why;
  const MpiModule* const mpi = MpiModule::Find(&why);
  if (mpi != nullptr) return mpi;
  if (options.transport == "mpi") throw Unsupported(StrCat("transport mpi: ", why));
  throw Unsupported(StrCat("the ranks that ", options.launcher,
                           " has started cannot find each other by MPI: ", why,
                           "; or give all of them --store HOST:PORT or CAFFE_STORE=HOST:PORT, with "
                           "the host of rank 0 and a free port there: they then use TCP"));
}

void LogEngine(const RankOptions& options, const std::string& engine) {
  if (options.rank != 0) return;
  LOG(INFO) << options.ranks << " ranks, started by "
            << (options.launcher.empty() ? "hand" : options.launcher) << ": gradients over "
            << (options.gpu ? "NCCL, decisions over " : "") << engine << ", heartbeats over TCP";
}

std::shared_ptr<Communicator> Connect(const RankOptions& options) {
  std::shared_ptr<Communicator> communicator;
  if (const MpiModule* const mpi = FindMpi(options)) {
    if (options.rank == 0) LOG(INFO) << "Wait until MPI has started all ranks.";
    const MpiWorld world = mpi->Start();
    communicator = JoinByMpi(*mpi, world, options);
    LogEngine(options, StrCat("MPI (", world.library, ")"));
  } else {
    communicator = JoinByTcp(options);
    LogEngine(options, StrCat("TCP (rank 0 at ", options.store, ")"));
  }
  try {
    CheckDevices(*communicator, options.gpu);
    return options.gpu ? MakeGpuCommunicator(communicator, *options.gpu) : communicator;
  } catch (...) {
    communicator->Abort(std::current_exception());
    throw;
  }
}

}  // namespace

std::shared_ptr<Communicator> JoinRanks(const RankOptions& options) {
  Require(options.ranks >= 1, "there cannot be ", options.ranks, " ranks; give a positive number");
  Require(0 <= options.rank && options.rank < options.ranks, "there is no rank ", options.rank,
          " of ", options.ranks, "; the first is 0, the last ", options.ranks - 1);
  Require(std::isfinite(options.join_seconds) && options.join_seconds > 0, "join_seconds is ",
          options.join_seconds, "; give a positive number of seconds");
  Require(options.transport == "auto" || options.transport == "tcp" || options.transport == "mpi",
          "transport is '", options.transport, "'; use auto, tcp or mpi");
  RaiseDescriptorLimit();
  return Connect(options);
}

}  // namespace caffe
