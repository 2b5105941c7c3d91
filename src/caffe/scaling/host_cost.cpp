#include <time.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/distributed/message_communicator.hpp"
#include "caffe/distributed/rank_order_sum.hpp"
#include "caffe/distributed/tcp_communicator.hpp"
#include "caffe/distributed/wire_type.hpp"
#include "caffe/error.hpp"
#include "caffe/scaling.hpp"

namespace caffe {
namespace {

// Larger than the caches, as the gradients of large nets are.
constexpr int64_t kReducedBytes = int64_t{32} << 20;
// The fastest of several runs counts: other programs only make them slower.
constexpr int kRuns = 5, kSmallReductions = 200;

double SecondsOf(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Duration {
  double wall = 0, processor = 0;  // seconds; the latter of the calling thread
};

// The fastest run of each kind.
Duration Fastest(const std::function<void()>& run) {
  Duration fastest{Network::kUnlimited, Network::kUnlimited};
  for (int i = 0; i < kRuns; ++i) {
    const double wall = SecondsOf(CLOCK_MONOTONIC), processor = SecondsOf(CLOCK_THREAD_CPUTIME_ID);
    run();
    fastest.wall = std::min(fastest.wall, SecondsOf(CLOCK_MONOTONIC) - wall);
    fastest.processor = std::min(fastest.processor, SecondsOf(CLOCK_THREAD_CPUTIME_ID) - processor);
  }
  return fastest;
}

struct MeasuredRank {
  Duration small, large;  // of one reduction
};

RendezvousOptions OptionsOfRank(int rank, int port, const std::string& secret) {
  RendezvousOptions options;
  options.rank = rank;
  options.ranks = 2;
  options.root = {{"127.0.0.1", port}};
  options.secret = secret;
  options.version = "1";
  options.join_seconds = 20;
  return options;
}

MeasuredRank Measure(Communicator* communicator) {
  std::vector<float> values(kReducedBytes / sizeof(float), 1.0F);
  const TensorView view{{Shape{static_cast<int64_t>(values.size())}, DType::kFloat}, values.data()};
  double number = 1;
  MeasuredRank measured;
  measured.small = Fastest([&] {
    for (int i = 0; i < kSmallReductions; ++i) communicator->AllReduceSum({&number, 1});
  });
  measured.small.wall /= kSmallReductions;
  measured.small.processor /= kSmallReductions;
  const std::unique_ptr<Event> filled = MakeDevice(DeviceKind::kCpu)->MakeEvent();
  measured.large = Fastest([&] { communicator->AllReduceMean(view, DType::kFloat, *filled); });
  return measured;
}

MeasuredRank MeasureRank(int rank, int port, const std::string& secret) {
  const std::shared_ptr<Communicator> communicator =
      MakeTcpCommunicator(OptionsOfRank(rank, port, secret));
  try {
    return Measure(communicator.get());
  } catch (...) {
    communicator->Abort(std::current_exception());
    throw;
  }
}

// The system does some of the work of one end in the other's time.
MeasuredRank Mean(const MeasuredRank& a, const MeasuredRank& b) {
  const auto mean = [](const Duration& one, const Duration& other) {
    return Duration{(one.wall + other.wall) / 2, (one.processor + other.processor) / 2};
  };
  return {mean(a.small, b.small), mean(a.large, b.large)};
}

MeasuredRank MeasureRanks() {
  const int port = Socket::Listen({"127.0.0.1", 0}).port();
  const std::string secret = StrCat(std::random_device()(), std::random_device()());
  std::future<MeasuredRank> other =
      std::async(std::launch::async, [&] { return MeasureRank(1, port, secret); });
  const MeasuredRank own = MeasureRank(0, port, secret);
  return Mean(own, other.get());
}

double SecondsPerSummedByte() {
  std::vector<float> first(kReductionBlockBytes / sizeof(float), 1.0F), second = first;
  const std::vector<void*> inputs = {first.data(), second.data()};
  void* const output = first.data();
  const Duration duration = Fastest([&] {
    SumInRankOrder(DType::kFloat, DType::kFloat, inputs, std::span(&output, 1), 0,
                   static_cast<int64_t>(first.size()), 0.5);
  });
  return duration.processor / static_cast<double>(inputs.size() * kReductionBlockBytes);
}

double SecondsPerRoundedByte() {
  const std::vector<float> values(kReductionBlockBytes, 1.0F);
  std::vector<bfloat16> rounded(values.size());
  const Duration duration = Fastest([&] {
    ConvertNumbers(values.data(), DType::kFloat, rounded.data(), DType::kBFloat16,
                   static_cast<int64_t>(values.size()));
  });
  return duration.processor / static_cast<double>(values.size() * sizeof(float));
}

}  // namespace

// The times of two ranks for a small and a large reduction give the cost of messages and bytes. The
// sums are measured separately and subtracted. See CostOfReduction().
HostCost MeasureHostCost() {
  const MeasuredRank measured = MeasureRanks();
  constexpr double kSmallRounds = 3, kSmallMessages = 6;
  const double blocks = static_cast<double>(kReducedBytes) / (2.0 * kReductionBlockBytes);
  HostCost cost;
  cost.per_message = measured.small.processor / kSmallMessages;
  cost.latency = std::max(0.0, measured.small.wall - measured.small.processor) / kSmallRounds;
  cost.per_summed_byte = SecondsPerSummedByte();
  cost.per_rounded_byte = SecondsPerRoundedByte();
  const double moving = measured.large.processor - cost.per_message * (2 + 4 * blocks) -
                        cost.per_summed_byte * kReducedBytes;
  cost.per_byte = std::max(0.0, moving) / (2.0 * kReducedBytes);
  return cost;
}

}  // namespace caffe
