#include "caffe/distributed/launcher.hpp"

#include <charconv>
#include <cstdlib>
#include <vector>

#include "caffe/core/printable.hpp"
#include "caffe/distributed/address.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

// Answers of one launcher; ranks is 0 if it has not started this process.
struct Launch {
  std::string launcher;
  int rank = 0, ranks = 0, local_ranks = 0, local_rank = 0;
  std::string store = {};  // rank 0's host and port, if the launcher names them
  std::string job = {};    // differs between runs
};

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  std::string Text(const char* name) const {
    const char* const value = environment_(name);
    return value != nullptr ? value : "";
  }

  bool Has(const char* name) const { return environment_(name) != nullptr; }

  // `standard` if it is not set.
  int Number(const char* name, int standard = 0) const {
    const std::string text = Text(name);
    if (!Has(name)) return standard;
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, number);
    Require(error == std::errc() && last == end && number >= 0, "environment variable ", name,
            " is '", Printable(text),
            "'; it should be a number set by the launcher of this process");
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
                .job = variables.Text("TORCHELASTIC_RUN_ID")};
  // The agent of torchrun listens on MASTER_PORT itself.
  const int is_taken = variables.Text("TORCHELASTIC_USE_AGENT_STORE") == "True" ? 1 : 0;
  const bool is_one_machine = launch.local_ranks == launch.ranks;
  launch.store = ToText({is_one_machine ? "127.0.0.1" : variables.Text("MASTER_ADDR"),
                         variables.Number("MASTER_PORT") + is_taken});
  return launch;
}

Launch OpenMpi(const Variables& variables) {
  Launch launch{.launcher = "mpirun",
                .rank = variables.Number("OMPI_COMM_WORLD_RANK"),
                .ranks = variables.Number("OMPI_COMM_WORLD_SIZE"),
                .local_ranks = variables.Number("OMPI_COMM_WORLD_LOCAL_SIZE"),
                .local_rank = variables.Number("OMPI_COMM_WORLD_LOCAL_RANK"),
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
          .local_rank = variables.Number("MPI_LOCALRANKID")};
}

// A step of srun; the script of a job has no SLURM_STEP_NUM_TASKS.
Launch Srun(const Variables& variables) {
  Launch launch{.launcher = "srun",
                .rank = variables.Number("SLURM_PROCID"),
                .ranks = variables.Number("SLURM_STEP_NUM_TASKS"),
                .local_rank = variables.Number("SLURM_LOCALID"),
                .job = variables.Text("SLURM_JOB_ID") + "." + variables.Text("SLURM_STEP_ID")};
  if (variables.Number("SLURM_STEP_NUM_NODES") == 1) launch.local_ranks = launch.ranks;
  return launch;
}

}  // namespace

std::optional<RankOptions> RanksFrom(const Environment& environment) {
  const Variables variables(environment);
  Launch hydra = Hydra(variables);
  const Launch srun = Srun(variables);
  // Slurm's own PMI-2 sets the variables of MPICH, but fewer of them.
  if (hydra.ranks == srun.ranks && hydra.rank == srun.rank) hydra.ranks = 0;
  // From the innermost launcher to the outermost: mpirun or srun can start torchrun, srun can start
  // mpirun.
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
              "by one launcher, or give --ranks 1 if that is what you want");
    }
    return std::nullopt;
  }
  RankOptions options;
  options.rank = inner.rank;
  options.ranks = inner.ranks;
  options.local_ranks = inner.local_ranks;
  options.local_rank = inner.local_rank;
  options.launcher = inner.launcher;
  options.store = inner.store.empty() ? variables.Text("CAFFE_STORE") : inner.store;
  if (!inner.job.empty()) options.run = StrCat(inner.launcher, " ", inner.job);
  return options;
}

std::optional<RankOptions> RanksFromEnvironment() {
  return RanksFrom([](const char* name) { return std::getenv(name); });
}

}  // namespace caffe
