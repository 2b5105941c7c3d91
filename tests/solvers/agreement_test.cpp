#include "caffe/solvers/agreement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "caffe/distributed/local_communicator.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

std::vector<std::string> ErrorsOf(int ranks,
                                  const std::function<std::vector<Fact>(int rank)>& facts) {
  const auto communicators = MakeLocalCommunicators(ranks);
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        CheckAgreement(*communicators[rank], facts(rank));
      } catch (const InvalidArgument& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(Agreement, OfEqualFacts) {
  EXPECT_THAT(ErrorsOf(3, [](int) { return std::vector<Fact>{{"the net", "a\nb"}}; }), Each(""));
}

TEST(Agreement, NamesTheRankTheFactAndTheLine) {
  const auto facts = [](int rank) {
    return std::vector<Fact>{{"the solver", "lr: 1"},
                             {"the net", rank == 2 ? "a: 1\nb: 3\nc: 4" : "a: 1\nb: 2\nc: 4"}};
  };
  EXPECT_THAT(ErrorsOf(3, facts),
              Each(AllOf(HasSubstr("rank 2 differs from rank 0 in the net"),
                         HasSubstr("line 2 is 'b: 3', that of rank 0 'b: 2'"))));
}

TEST(Agreement, NamesALineThatIsMissing) {
  const auto facts = [](int rank) {
    return std::vector<Fact>{{"the net", rank == 1 ? "a: 1" : "a: 1\nb: 2"}};
  };
  EXPECT_THAT(ErrorsOf(2, facts), Each(HasSubstr("line 2 is nothing, that of rank 0 'b: 2'")));
}

}  // namespace
}  // namespace caffe
