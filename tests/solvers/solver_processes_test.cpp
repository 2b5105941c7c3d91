// Solvers like those of several processes: one thread each, connected by TCP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "caffe/distributed/tcp_communicator.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver.hpp"
#include "tests/support/loopback_ranks.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr char kConstantNet[] = R"(
  layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 dim: 3 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
    inner_product_param { num_output: 1 } }
  layer { name: "loss" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1 }
)";

// The errors of this many processes that train with this solver; "" for none.
std::vector<std::string> ErrorsOfTraining(const SolverParameter& param, int ranks) {
  const int port = testing::FreePort();
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const RendezvousOptions options = testing::LoopbackRank(rank, ranks, port);
        Solver(param, {.communicator = MakeTcpCommunicator(options)}).Solve();
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

class SolverProcesses : public ::testing::Test {
 protected:
  SolverParameter Parse(const std::string& options) {
    SolverParameter solver;
    ParseTextProto(options +
                       " lr_policy: 'fixed' base_lr: 0.1 solver_mode: CPU snapshot_prefix: '" +
                       folder_.path("run") + "' net_param { " + kConstantNet + " }",
                   "test", &solver);
    return solver;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(SolverProcesses, TrainTogether) {
  EXPECT_THAT(ErrorsOfTraining(Parse("max_iter: 4 snapshot: 2"), 3), Each(""));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run_iter_4.solverstate"));
}

// The periodic snapshot of the last iteration fails, which only rank 0 knows.
TEST_F(SolverProcesses, EndWithTheErrorOfTheLastSnapshot) {
  std::filesystem::create_directory(folder_ / "run_iter_4.caffemodel");
  EXPECT_THAT(ErrorsOfTraining(Parse("max_iter: 4 snapshot: 2"), 3),
              Each(HasSubstr("run_iter_4.caffemodel: cannot write: is a directory")));
}

TEST_F(SolverProcesses, EndWithTheErrorOfASnapshotAfterTraining) {
  std::filesystem::create_directory(folder_ / "run_iter_3.caffemodel");
  EXPECT_THAT(ErrorsOfTraining(Parse("max_iter: 3 snapshot: 2"), 2),
              Each(HasSubstr("run_iter_3.caffemodel: cannot write: is a directory")));
}

}  // namespace
}  // namespace caffe
