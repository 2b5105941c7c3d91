#include "tools/caffe/rank_options.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "caffe/error.hpp"

namespace caffe::tools {

void RankFlags::Add(CLI::App& app) {
  app.add_option("--ranks", ranks_,
                 "Processes that train together, on one machine or several; 1: this one alone, "
                 "whatever has started it")
      ->type_name("N")
      ->default_str("as mpirun, srun or torchrun says");
  app.add_option("--rank", rank_, "The rank of this process, from 0")
      ->type_name("N")
      ->default_str("as the launcher says");
  app.add_option("--store", store_,
                 "Where rank 0 listens for the others; ranks that MPI has started then use TCP")
      ->type_name("HOST:PORT")
      ->default_str("as torchrun says; MPI needs none");
  app.add_option("--join_seconds", join_seconds_, "Seconds within which all ranks must have joined")
      ->type_name("SECONDS");
  app.add_option(
         "--transport", transport_,
         "What carries gradients between ranks on CPUs: mpi, tcp, or auto: MPI if mpirun or "
         "srun has started the ranks and there is no --store, otherwise TCP")
      ->type_name("auto|mpi|tcp");
}

std::optional<RankOptions> RankFlags::Options() const {
  Require(transport_ == "auto" || transport_ == "tcp" || transport_ == "mpi", "--transport is '",
          transport_, "'; use auto, tcp or mpi");
  if (ranks_ == 1) return std::nullopt;
  RankOptions options;
  if (ranks_) {
    Require(*ranks_ > 1, "--ranks is ", *ranks_, "; give the number of processes, from 1");
    Require(rank_.has_value(), "--ranks is ", *ranks_,
            ", but --rank is missing; give each process "
            "its number, from 0 to ",
            *ranks_ - 1);
    Require(!store_.empty(), "--ranks is ", *ranks_,
            ", but --store is missing; give all the same host and free port of rank 0, as in "
            "--store node1:29500");
    options.ranks = *ranks_;
    options.rank = *rank_;
  } else {
    Require(!rank_, "--rank is given, but not --ranks; give both");
    const std::optional<RankOptions> told = RanksFromEnvironment();
    if (!told) {
      Require(store_.empty(),
              "--store is given, but neither --ranks nor a launcher (mpirun, srun, "
              "torchrun) says which rank this is");
      Require(
          transport_ != "mpi",
          "--transport is mpi, but no launcher has started several ranks; start them by mpirun");
      return std::nullopt;
    }
    options = *told;
  }
  if (!store_.empty()) options.store = store_;
  options.join_seconds = join_seconds_;
  options.transport = transport_;
  return options;
}

void LogAsRank(int rank) {
  if (rank != 0) FLAGS_minloglevel = std::max(FLAGS_minloglevel, google::GLOG_WARNING);
}

std::string FileOfRank(const std::string& file, int rank) {
  if (rank == 0 || file.empty()) return file;
  std::filesystem::path path = file;
  const std::string extension = path.extension().string();
  path.replace_extension(StrCat("rank", rank, extension));
  return path.string();
}

}  // namespace caffe::tools
