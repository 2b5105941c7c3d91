#include "caffe/distributed/launcher.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <vector>

#include "caffe/core/hash.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/distributed/address.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

// What one launcher says; ranks is 0 where it has not started this process.
struct Launch {
  std::string launcher;
  int rank = 0, ranks = 0, local_ranks = 0, local_rank = 0;
  // Rank 0's host and port; empty or 0 where the launcher does not tell.
  std::string host = {};
  int port = 0;
  std::string job = {};  // another one for each run
};

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  std::string Text(const char* name) const {
    const char* const value = environment_(name);
    return value != nullptr ? value : "";
  }

  bool Has(const char* name) const { return environment_(name) != nullptr; }

  // `standard` where it is not set.
  int Number(const char* name, int standard = 0) const {
    const std::string text = Text(name);
    if (!Has(name)) return standard;
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, number);
    Require(error == std::errc() && last == end && number >= 0, "environment variable ", name,
            " is '", Printable(text),
            "'; it should be a number that whoever started this process "
            "has set");
    return number;
  }

 private:
  const Environment& environment_;
};

Launch Torchrun(const Variables& variables) {
  if (!variables.Has("RANK") || !variables.Has("WORLD_SIZE") || !variables.Has("MASTER_ADDR")) {
    return {"torchrun"};
  }
  Launch launch{.launcher = "torchrun",
                .rank = variables.Number("RANK"),
                .ranks = variables.Number("WORLD_SIZE"),
                .local_ranks = variables.Number("LOCAL_WORLD_SIZE"),
                .local_rank = variables.Number("LOCAL_RANK"),
                .host = variables.Text("MASTER_ADDR"),
                .port = variables.Number("MASTER_PORT"),
                .job = variables.Text("TORCHELASTIC_RUN_ID")};
  // The agent of torchrun listens on MASTER_PORT itself.
  if (variables.Text("TORCHELASTIC_USE_AGENT_STORE") == "True") ++launch.port;
  return launch;
}

// "1234.0;tcp://10.0.0.1,172.17.0.1:43217": the first address of the host of mpirun, where rank 0
// runs unless somebody has arranged otherwise.
std::string HostOfMpirun(const std::string& uri) {
  const size_t begin = uri.find("tcp://");
  if (begin == std::string::npos) return "";
  const std::string addresses = uri.substr(begin + 6);
  return addresses.substr(0, addresses.find_first_of(",:"));
}

Launch OpenMpi(const Variables& variables) {
  Launch launch{.launcher = "mpirun",
                .rank = variables.Number("OMPI_COMM_WORLD_RANK"),
                .ranks = variables.Number("OMPI_COMM_WORLD_SIZE"),
                .local_ranks = variables.Number("OMPI_COMM_WORLD_LOCAL_SIZE"),
                .local_rank = variables.Number("OMPI_COMM_WORLD_LOCAL_RANK"),
                .host = HostOfMpirun(variables.Text("OMPI_MCA_orte_hnp_uri")),
                .job = variables.Text("PMIX_NAMESPACE")};
  if (launch.job.empty()) launch.job = variables.Text("OMPI_MCA_ess_base_jobid");
  return launch;
}

// MPICH, Intel MPI and MVAPICH.
Launch Hydra(const Variables& variables) {
  return {.launcher = "mpirun",
          .rank = variables.Number("PMI_RANK"),
          .ranks = variables.Number("PMI_SIZE"),
          .local_ranks = variables.Number("MPI_LOCALNRANKS"),
          .local_rank = variables.Number("MPI_LOCALRANKID"),
          .job = std::to_string(::getppid())};  // on one machine, the ranks have one parent
}

// A step of srun; the script of a job has no SLURM_STEP_NUM_TASKS.
Launch Srun(const Variables& variables) {
  Launch launch{.launcher = "srun",
                .rank = variables.Number("SLURM_PROCID"),
                .ranks = variables.Number("SLURM_STEP_NUM_TASKS"),
                .local_rank = variables.Number("SLURM_LOCALID"),
                .job = variables.Text("SLURM_JOB_ID") + "." + variables.Text("SLURM_STEP_ID")};
  if (variables.Number("SLURM_STEP_NUM_NODES") == 1) launch.local_ranks = launch.ranks;
  const std::string nodes = variables.Text("SLURM_STEP_NODELIST");
  if (!nodes.empty()) launch.host = FirstHost(nodes);
  return launch;
}

// A port that all ranks of a run come to by themselves, another one for each run, below those that
// systems give to connections (32768 and up).
int PortOf(const std::string& job) {
  return static_cast<int>(20000 + Hash64(job) % 12000);
}

}  // namespace

std::string FirstHost(const std::string& list) {
  const size_t bracket = list.find_first_of("[,");
  std::string host = list.substr(0, bracket);
  if (bracket != std::string::npos && list[bracket] == '[') {
    const size_t end = list.find_first_of("-,]", bracket);
    const size_t close = list.find(']', bracket);
    Require(end != std::string::npos && close != std::string::npos, "SLURM_STEP_NODELIST is '",
            Printable(list), "', which names no hosts; give --store host:port of rank 0");
    host += list.substr(bracket + 1, end - bracket - 1);
    host += list.substr(close + 1, list.find_first_of("[,", close) - close - 1);
  }
  return host;
}

std::optional<RankOptions> RanksFrom(const Environment& environment) {
  const Variables variables(environment);
  Launch hydra = Hydra(variables);
  const Launch srun = Srun(variables);
  // Slurm's own PMI-2 has the variables of MPICH, but tells less by them.
  if (hydra.ranks == srun.ranks && hydra.rank == srun.rank) hydra.ranks = 0;
  // From the innermost to the outermost: torchrun can be started by mpirun or srun, mpirun by srun.
  std::vector<Launch> launches = {Torchrun(variables), OpenMpi(variables), hydra, srun};
  std::erase_if(launches, [](const Launch& launch) { return launch.ranks == 0; });
  if (launches.empty()) return std::nullopt;
  const Launch& inner = launches.front();
  Require(inner.rank < inner.ranks, inner.launcher, " says that this is rank ", inner.rank, " of ",
          inner.ranks, "; ranks begin with 0");
  if (inner.ranks == 1) {
    for (const Launch& outer : launches) {
      Require(outer.ranks == 1, inner.launcher, " has started this process alone, but ",
              outer.launcher, " ", outer.ranks,
              " of them: each would train by itself and overwrite the others' snapshots; start all "
              "by one launcher, or say --ranks 1 where that is meant");
    }
    return std::nullopt;
  }
  RankOptions options;
  options.rank = inner.rank;
  options.ranks = inner.ranks;
  options.local_ranks = inner.local_ranks;
  options.local_rank = inner.local_rank;
  if (!inner.job.empty()) options.run = StrCat(inner.launcher, " ", inner.job);
  std::string host = inner.host;
  if (inner.local_ranks == inner.ranks) host = "127.0.0.1";
  if (host.empty()) return options;  // somebody else has to tell
  options.store = ToText({host, inner.port != 0 ? inner.port : PortOf(inner.launcher + inner.job)});
  return options;
}

std::optional<RankOptions> RanksFromEnvironment() {
  return RanksFrom([](const char* name) { return std::getenv(name); });
}

}  // namespace caffe
