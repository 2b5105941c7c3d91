#include "caffe/distributed/launcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "caffe/error.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Values = std::map<std::string, std::string>;

std::optional<RankOptions> RanksFrom(const Values& values) {
  return caffe::RanksFrom([&](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}

std::string ErrorOf(const Values& values) {
  try {
    RanksFrom(values);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

Values MpiValues(const std::string& rank, const std::string& size, const std::string& local) {
  return {{"OMPI_COMM_WORLD_RANK", rank},
          {"OMPI_COMM_WORLD_SIZE", size},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", local},
          {"PMIX_NAMESPACE", "605356033"}};
}

Values SlurmValues(const std::string& rank, const std::string& size, const std::string& nodes) {
  return {{"SLURM_PROCID", rank},        {"SLURM_STEP_NUM_TASKS", size},
          {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_NODELIST", nodes},
          {"SLURM_JOB_ID", "77"},        {"SLURM_STEP_ID", "0"}};
}

Values TorchValues(const std::string& rank, const std::string& size) {
  return {{"RANK", rank},
          {"WORLD_SIZE", size},
          {"LOCAL_WORLD_SIZE", "2"},
          {"MASTER_ADDR", "node1"},
          {"MASTER_PORT", "29500"}};
}

TEST(Launcher, NobodyHasStartedSeveral) {
  EXPECT_FALSE(RanksFrom(Values{}));
  EXPECT_FALSE(RanksFrom(MpiValues("0", "1", "1")));
  EXPECT_FALSE(RanksFrom(TorchValues("0", "1")));
  // The script of a Slurm job is one process, independent of its steps.
  EXPECT_FALSE(RanksFrom({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));
  // Other programs use a variable of this name.
  EXPECT_FALSE(RanksFrom({{"RANK", "3"}}));
}

// MPI itself brings its ranks together, so that they need no store.
TEST(Launcher, Mpirun) {
  const auto ranks = RanksFrom(MpiValues("2", "4", "2"));
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->rank, 2);
  EXPECT_EQ(ranks->ranks, 4);
  EXPECT_EQ(ranks->local_ranks, 2);
  EXPECT_EQ(ranks->launcher, "mpirun");
  EXPECT_EQ(ranks->store, "");
}

TEST(Launcher, AStoreInTheEnvironment) {
  Values values = MpiValues("2", "4", "2");
  values["CAFFE_STORE"] = "node1:29500";
  EXPECT_EQ(RanksFrom(values)->store, "node1:29500");
}

TEST(Launcher, Hydra) {
  const Values values = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}};
  EXPECT_EQ(RanksFrom(values)->rank, 1);
  EXPECT_EQ(RanksFrom(values)->launcher, "mpirun");
}

TEST(Launcher, Srun) {
  const auto ranks = RanksFrom(SlurmValues("5", "8", "gpu[03-07,11],login1"));
  EXPECT_EQ(ranks->rank, 5);
  EXPECT_EQ(ranks->ranks, 8);
  EXPECT_EQ(ranks->launcher, "srun");
  EXPECT_EQ(ranks->store, "");
}

TEST(Launcher, Torchrun) {
  Values values = TorchValues("3", "4");
  EXPECT_EQ(RanksFrom(values)->rank, 3);
  EXPECT_EQ(RanksFrom(values)->launcher, "torchrun");
  EXPECT_EQ(RanksFrom(values)->store, "node1:29500");
  values["TORCHELASTIC_USE_AGENT_STORE"] = "True";  // torchrun itself listens on that port
  EXPECT_EQ(RanksFrom(values)->store, "node1:29501");
  values["LOCAL_WORLD_SIZE"] = "4";
  EXPECT_EQ(RanksFrom(values)->store, "127.0.0.1:29501");
  values["MASTER_ADDR"] = "fe80::1";
  values["LOCAL_WORLD_SIZE"] = "2";
  EXPECT_EQ(RanksFrom(values)->store, "[fe80::1]:29501");
}

// srun --mpi=pmi2 sets MPICH's variables, too.
TEST(Launcher, SrunWithPmi2) {
  Values values = SlurmValues("1", "4", "node[1-4]");
  values.merge(Values{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"PMI_JOBID", "77.0"}});
  EXPECT_EQ(RanksFrom(values)->launcher, "srun");
}

TEST(Launcher, EachRunHasAnIdentity) {
  EXPECT_EQ(RanksFrom(MpiValues("0", "4", "4"))->run, RanksFrom(MpiValues("3", "4", "4"))->run);
  Values other_job = MpiValues("0", "4", "4");
  other_job["PMIX_NAMESPACE"] = "605356034";
  EXPECT_NE(RanksFrom(MpiValues("0", "4", "4"))->run, RanksFrom(other_job)->run);
}

TEST(Launcher, TheInnermostCounts) {
  Values values = SlurmValues("1", "2", "node[1-2]");  // for mpirun's daemons
  values.merge(MpiValues("5", "8", "4"));
  EXPECT_EQ(RanksFrom(values)->rank, 5);
  values.merge(TorchValues("7", "16"));
  EXPECT_EQ(RanksFrom(values)->rank, 7);
}

TEST(Launcher, SeveralThatTrainEachAloneAreRefused) {
  Values values = SlurmValues("1", "4", "node[1-4]");
  values.merge(TorchValues("0", "1"));
  EXPECT_THAT(ErrorOf(values), AllOf(HasSubstr("torchrun has started this process alone, but srun "
                                               "4 of them"),
                                     HasSubstr("-ranks 1")));
}

TEST(Launcher, ValuesThatAreNoRanksAreTold) {
  EXPECT_THAT(ErrorOf(MpiValues("x", "4", "4")), HasSubstr("OMPI_COMM_WORLD_RANK is 'x'"));
  EXPECT_THAT(ErrorOf(MpiValues("4", "4", "4")), HasSubstr("this is rank 4 of 4"));
}

}  // namespace
}  // namespace caffe
