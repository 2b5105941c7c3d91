#include "caffe/distributed/local_communicator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "caffe/error.hpp"
#include "tests/distributed/exchange_blocks.hpp"
#include "tests/distributed/rank_values.hpp"

namespace caffe {
namespace {

using testing::Filled;
using ::testing::HasSubstr;
using testing::RandomValues;
using testing::ViewOf;

// Runs `body` on a thread per rank; returns each one's error ("" for none).
std::vector<std::string> RunThreads(int ranks, const std::function<void(Communicator&)>& body) {
  const auto communicators = MakeLocalCommunicators(ranks);
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(*communicators[rank]);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
        communicators[rank]->Abort(std::current_exception());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

template <typename T>
class LocalCommunicatorTest : public ::testing::Test {};
using Types = ::testing::Types<double, float, float16, bfloat16>;
TYPED_TEST_SUITE(LocalCommunicatorTest, Types);

// A number after it was sent as a Wire.
template <typename Wire, typename T>
double Travelled(T value) {
  if (sizeof(Wire) >= sizeof(T)) return static_cast<double>(value);
  return static_cast<double>(Wire(static_cast<double>(value)));
}

TYPED_TEST(LocalCommunicatorTest, RoundsWhatTravelsInFewerBits) {
  using T = TypeParam;
  constexpr int kRanks = 3;
  for (const DType wire : {DType::kDouble, DType::kFloat, DType::kFloat16, DType::kBFloat16}) {
    auto values = RandomValues<T>(kRanks, 5000);
    std::vector<T> expected(5000);
    VisitFloat(wire, [&]<typename Wire>(TypeTag<Wire>) {
      for (size_t i = 0; i < expected.size(); ++i) {
        double sum = 0;
        for (const auto& row : values) sum += Travelled<Wire>(row[i]);
        const double mean = sum * (1.0 / kRanks);
        expected[i] = sizeof(Wire) < sizeof(T) ? T(static_cast<double>(Wire(mean))) : T(mean);
      }
    });
    const auto errors = RunThreads(kRanks, [&](Communicator& communicator) {
      communicator.AllReduceMean(ViewOf(values[communicator.rank()]), wire, Filled());
    });
    EXPECT_THAT(errors, ::testing::Each(""));
    for (const auto& row : values) {
      EXPECT_EQ(std::memcmp(row.data(), expected.data(), expected.size() * sizeof(T)), 0)
          << "as " << Name(wire);
    }
  }
}

TYPED_TEST(LocalCommunicatorTest, TakesTheMeanInOrderOfRank) {
  using T = TypeParam;
  for (const int ranks : {1, 2, 3, 5}) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{4}, size_t{5000}}) {
      auto values = RandomValues<T>(ranks, count);
      std::vector<T> expected(count);
      for (size_t i = 0; i < count; ++i) {
        double sum = 0;
        for (int rank = 0; rank < ranks; ++rank) sum += static_cast<double>(values[rank][i]);
        expected[i] = T(sum * (1.0 / ranks));
      }
      const auto errors = RunThreads(ranks, [&](Communicator& communicator) {
        communicator.AllReduceMean(ViewOf(values[communicator.rank()]), DType::kDouble, Filled());
      });
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(errors[rank], "");
        EXPECT_TRUE(count == 0 ||
                    std::memcmp(values[rank].data(), expected.data(), count * sizeof(T)) == 0)
            << "rank " << rank << " of " << ranks << ", " << count << " elements";
      }
    }
  }
}

TEST(LocalCommunicator, GathersTextsOfAnyLength) {
  const auto errors = RunThreads(3, [](Communicator& communicator) {
    const auto text = [](int rank) { return std::string(rank * 1000, static_cast<char>(rank)); };
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(communicator.AllGather(text(communicator.rank())),
                  ::testing::ElementsAre(text(0), text(1), text(2)));
    }
  });
  EXPECT_THAT(errors, ::testing::Each(""));
}

TEST(LocalCommunicator, ManyCollectivesKeepTheirOrder) {
  const auto errors = RunThreads(4, [](Communicator& communicator) {
    for (int i = 0; i < 500; ++i) {
      std::array<double, 3> numbers = {1, 1.0 * communicator.rank(), 1.0 * i};
      communicator.AllReduceSum(numbers);
      if (numbers != std::array<double, 3>{4, 6, 4.0 * i}) throw InternalError(StrCat("round ", i));
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(4));
}

// Rank 0 ends its sums in a pass before it begins the others; rank 1 does both at the same time.
TEST(LocalCommunicator, SumsInAPassDoNotMeetOtherCollectives) {
  const auto errors = RunThreads(2, [](Communicator& communicator) {
    const auto sum = [&](bool in_pass) {
      for (int i = 0; i < 200; ++i) {
        double number = in_pass ? i : -i;
        const double want = 2 * number;
        in_pass ? communicator.AllReduceSumInPass({&number, 1})
                : communicator.AllReduceSum({&number, 1});
        EXPECT_EQ(number, want) << i;
      }
    };
    std::thread other([&] {
      if (communicator.rank() == 1) sum(/*in_pass=*/false);
    });
    sum(/*in_pass=*/true);
    other.join();
    if (communicator.rank() == 0) sum(/*in_pass=*/false);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(LocalCommunicator, ExchangesBlocksOfAnyLengthInAPass) {
  const auto errors = RunThreads(3, [](Communicator& communicator) {
    for (int i = 0; i < 2; ++i) testing::ExchangeBlocks(communicator);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(LocalCommunicator, RefusesBlocksOfAnotherLengthThanExpected) {
  const auto errors = RunThreads(
      3, [](Communicator& communicator) { testing::ExchangeBlocks(communicator, /*surplus=*/1); });
  EXPECT_THAT(errors[1], HasSubstr("rank 1: 8 bytes meet 7 of rank 0; train the same net"));
}

TEST(LocalCommunicator, PassesOnWhatIsNotFinite) {
  std::vector<std::vector<float>> values(2, std::vector<float>{1, 2, 3});
  values[1][0] = INFINITY;
  values[0][2] = NAN;
  RunThreads(2, [&](Communicator& communicator) {
    communicator.AllReduceMean(ViewOf(values[communicator.rank()]), DType::kDouble, Filled());
  });
  for (const std::vector<float>& one : values) {
    EXPECT_TRUE(std::isinf(one[0]));
    EXPECT_EQ(one[1], 2);
    EXPECT_TRUE(std::isnan(one[2]));
  }
}

TEST(LocalCommunicator, RefusesTensorsThatDiffer) {
  const auto errors = RunThreads(3, [](Communicator& communicator) {
    std::vector<float> values(communicator.rank() == 1 ? 5 : 4);
    communicator.AllReduceMean(ViewOf(values), DType::kDouble, Filled());
  });
  for (const std::string& error : errors) EXPECT_THAT(error, HasSubstr("train the same net"));
}

TEST(LocalCommunicator, AFailureOfOneRankReachesAll) {
  const auto errors = RunThreads(4, [](Communicator& communicator) {
    double number = 1;
    for (int i = 0;; ++i) {
      if (communicator.rank() == 2 && i == 10) throw IoError("disk 7 is gone");
      communicator.AllReduceSum({&number, 1});
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(4, "disk 7 is gone"));
}

TEST(LocalCommunicator, TheFirstErrorStays) {
  const auto communicators = MakeLocalCommunicators(2);
  communicators[1]->Abort(std::make_exception_ptr(IoError("first")));
  communicators[0]->Abort(std::make_exception_ptr(IoError("second")));
  double number = 0;
  try {
    communicators[0]->AllReduceSum({&number, 1});
    FAIL() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

TEST(LocalCommunicator, NeedsARank) {
  EXPECT_THROW(MakeLocalCommunicators(0), InvalidArgument);
}

}  // namespace
}  // namespace caffe
