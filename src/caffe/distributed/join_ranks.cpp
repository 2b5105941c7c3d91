#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "caffe/common.hpp"
#include "caffe/core/activity.hpp"
#include "caffe/device/device.hpp"
#include "caffe/distributed/gpu_communicators.hpp"
#include "caffe/distributed/secret_file.hpp"
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
  ::setrlimit(RLIMIT_NOFILE, &limit);  // where it fails, running out says so
}

// What this process computes, tests, writes or waits for: the activity of a thread that does not
// only prepare data.
std::string WhatIsDone() {
  for (const Activity::Report& report : Activity::LongerThan(0)) {
    if (!report.text.starts_with("reader:") && !report.text.starts_with("parser:")) {
      return report.text;
    }
  }
  return "";
}

// All on the CPU, or each on a GPU of its own.
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

MembershipOptions MembershipOf(const RankOptions& options) {
  MembershipOptions membership;
  membership.rank = options.rank;
  membership.ranks = options.ranks;
  Require(!options.store.empty(),
          "whoever has started this rank does not tell where rank 0 runs; give all ranks its host "
          "and a free port there, as in --store node1:29500");
  membership.store = ParseAddress(options.store);
  Require(membership.store.port != 0, "the store is '", options.store,
          "'; all ranks need to know its port");
  membership.secret = options.secret.empty() ? SecretOfUser() : options.secret;
  membership.version = Version();
  membership.run = options.run;
  membership.join_seconds = std::min(options.join_seconds, kLongestWait);
  membership.doing = WhatIsDone;
  return membership;
}

std::shared_ptr<Communicator> Connect(MembershipOptions membership, const RankOptions& options) {
  const std::shared_ptr<Communicator> communicator =
      options.transport == "mpi" ? MakeMpiCommunicator(std::move(membership))
                                 : MakeTcpCommunicator(std::move(membership));
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
  Require(options.transport == "tcp" || options.transport == "mpi", "transport is '",
          options.transport, "'; use tcp or mpi");
  RaiseDescriptorLimit();
  return Connect(MembershipOf(options), options);
}

}  // namespace caffe
