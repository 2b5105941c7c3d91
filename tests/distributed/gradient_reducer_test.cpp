#include "caffe/distributed/gradient_reducer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <latch>
#include <limits>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include "caffe/distributed/local_communicator.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

// Gradients of one rank, each with its own size, filled with numbers that encode rank and position.
class Gradients {
 public:
  explicit Gradients(const std::vector<TensorDesc>& descs) {
    for (const TensorDesc& desc : descs) {
      SyncedTensor& tensor = tensors_.emplace_back(device_);
      tensor.Reset(desc);
    }
  }

  Device& device() { return *device_; }
  SyncedTensor& operator[](size_t index) { return tensors_[index]; }
  std::vector<SyncedTensor*> pointers() {
    std::vector<SyncedTensor*> all;
    for (SyncedTensor& tensor : tensors_) all.push_back(&tensor);
    return all;
  }
  void Fill(int rank, int step) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      float* values = tensors_[i].mutable_host<float>();
      for (int64_t k = 0; k < tensors_[i].desc().count(); ++k) values[k] = Value(rank, step, i, k);
      tensors_[i].data();  // writes back
    }
  }
  static float Value(int rank, int step, size_t index, int64_t place) {
    return static_cast<float>(4 * rank + step % 7 + 2 * (index % 3) + 8 * (place % 5));
  }

 private:
  std::shared_ptr<Device> device_ = MakeDevice(DeviceKind::kCpu);
  std::deque<SyncedTensor> tensors_;
};

std::vector<TensorDesc> Floats(const std::vector<int64_t>& counts) {
  std::vector<TensorDesc> descs;
  for (const int64_t count : counts) descs.push_back({Shape{count}, DType::kFloat});
  return descs;
}

void RunReducingRanks(int ranks,
                      const std::function<void(int, std::shared_ptr<Communicator>)>& body) {
  const auto communicators = MakeLocalCommunicators(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { body(rank, communicators[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GradientReducer, LaysBucketsOutInOneBlock) {
  const auto communicator = MakeLocalCommunicators(1)[0];
  Gradients gradients(Floats({100, 3, 50, 1000, 16}));
  gradients[1].mutable_host<float>()[2] = 7;
  const GradientReducer reducer(communicator, gradients.device(), gradients.pointers(),
                                {.buckets = 3});
  // 4 * 1216 bytes with padding to 64; a third is 1622.
  EXPECT_THAT(reducer.bucket_bytes(), ::testing::ElementsAre(448 + 64 + 256 + 4032, 64));
  const auto place = [&](int i) { return static_cast<char*>(gradients[i].data()); };
  std::vector<bool> awaited;
  for (size_t i = 0; i < 5; ++i) awaited.push_back(reducer.IsAwaited(i));
  EXPECT_THAT(awaited, ::testing::ElementsAre(false, false, false, true, true)) << "the last ones";
  EXPECT_EQ(place(1) - place(0), 448);
  EXPECT_EQ(place(2) - place(1), 64);
  EXPECT_EQ(place(3) - place(2), 256);
  EXPECT_EQ(gradients[1].host<float>()[2], 7) << "contents move along";
}

TEST(GradientReducer, MakesABucketPerTypeOfElement) {
  const auto communicator = MakeLocalCommunicators(1)[0];
  auto descs = Floats({16, 16, 16, 16});
  descs[2].dtype = descs[3].dtype = DType::kDouble;
  Gradients gradients(descs);
  const GradientReducer reducer(communicator, gradients.device(), gradients.pointers(),
                                {.buckets = 1});
  EXPECT_THAT(reducer.bucket_bytes(), ::testing::ElementsAre(128, 256));
}

TEST(GradientReducer, ReducesWhateverBecomesReadyFirst) {
  constexpr int kRanks = 3, kSteps = 50;
  const std::vector<int64_t> counts = {1, 70, 33, 5, 512, 9, 64};
  std::atomic<int> wrong = 0;
  RunReducingRanks(kRanks, [&](int rank, std::shared_ptr<Communicator> communicator) {
    Gradients gradients(Floats(counts));
    GradientReducer reducer(communicator, gradients.device(), gradients.pointers(), {.buckets = 4});
    for (int step = 0; step < kSteps; ++step) {
      gradients.Fill(rank, step);
      reducer.Start();
      // The order differs for each rank and each step.
      for (size_t i = 0; i < counts.size(); ++i) {
        reducer.MarkReady((i * (rank + 2) + step) % counts.size());
      }
      reducer.Wait();
      for (size_t i = 0; i < counts.size(); ++i) {
        for (int64_t k = 0; k < counts[i]; ++k) {
          wrong += gradients[i].host<float>()[k] != Gradients::Value(1, step, i, k);
        }
      }
    }
  });
  EXPECT_EQ(wrong, 0);
}

// A counter that other threads wait for.
class Counter {
 public:
  int operator++() {
    const int count = ++count_;
    count_.notify_all();
    return count;
  }
  operator int() const { return count_; }
  void Await(int count) const {
    for (int now = count_; now < count; now = count_) count_.wait(now);
  }

 private:
  std::atomic<int> count_ = 0;
};

// Counts the reductions that have ended; fails from number `fails_at` on.
class WatchedCommunicator final : public Communicator {
 public:
  explicit WatchedCommunicator(std::shared_ptr<Communicator> inner, int fails_at = -1)
      : inner_(std::move(inner)), fails_at_(fails_at) {}

  int rank() const override { return inner_->rank(); }
  int ranks() const override { return inner_->ranks(); }
  int ranks_in_process() const override { return inner_->ranks_in_process(); }
  void AllReduceMean(const TensorView& tensor, DType wire, Event& filled) override {
    if (reductions == fails_at_) throw DeviceError("link 3 is down");
    inner_->AllReduceMean(tensor, wire, filled);
    ++reductions;
  }
  void AllReduceSum(std::span<double> numbers) override { inner_->AllReduceSum(numbers); }
  void AllReduceSumInPass(std::span<double> numbers) override {
    inner_->AllReduceSumInPass(numbers);
  }
  void ExchangeInPass(std::span<const std::span<const char>> sent,
                      std::span<const std::span<char>> received) override {
    inner_->ExchangeInPass(sent, received);
  }
  std::vector<std::string> AllGather(const std::string& text) override {
    return inner_->AllGather(text);
  }
  void Abort(std::exception_ptr error) override { inner_->Abort(std::move(error)); }
  void ThrowIfAborted() override { inner_->ThrowIfAborted(); }

  Counter reductions;

 private:
  const std::shared_ptr<Communicator> inner_;
  const int fails_at_;
};

TEST(GradientReducer, ReducesFirstBucketsBeforeTheLastGradientIsThere) {
  std::atomic<int> early = 0;
  Trace trace;
  RunReducingRanks(2, [&](int rank, std::shared_ptr<Communicator> communicator) {
    Gradients gradients(Floats({64, 64}));
    const auto watched = std::make_shared<WatchedCommunicator>(communicator);
    GradientReducer reducer(watched, gradients.device(), gradients.pointers(),
                            {.buckets = 2, .trace = &trace});
    gradients.Fill(rank, 0);
    reducer.Start();
    reducer.MarkReady(0);
    watched->reductions.Await(1);
    early += watched->reductions;
    reducer.MarkReady(1);
    reducer.Wait();
  });
  EXPECT_EQ(early, 2) << "one on each rank";
  std::ostringstream json;
  trace.WriteJson(json);
  EXPECT_THAT(json.str(), HasSubstr("reduce bucket 1 (256 bytes)"));
}

// Holds its first reduction until it is released.
class HeldCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  int ranks_in_process() const override { return 1; }
  void AllReduceMean(const TensorView&, DType, Event&) override {
    if (++reductions == 1) release.get_future().wait();
  }
  void AllReduceSum(std::span<double>) override {}
  void AllReduceSumInPass(std::span<double>) override {}
  void ExchangeInPass(std::span<const std::span<const char>>,
                      std::span<const std::span<char>>) override {}
  std::vector<std::string> AllGather(const std::string& text) override { return {text}; }
  void Abort(std::exception_ptr) override {}
  void ThrowIfAborted() override {}

  Counter reductions;  // started ones
  std::promise<void> release;
};

TEST(GradientReducer, APassMayBeCancelledWhileABucketIsInFlight) {
  Gradients gradients(Floats({64, 64}));
  const auto communicator = std::make_shared<HeldCommunicator>();
  GradientReducer reducer(communicator, gradients.device(), gradients.pointers(), {.buckets = 2});
  reducer.Start();
  reducer.MarkReady(0);
  communicator->reductions.Await(1);
  reducer.Cancel();
  communicator->release.set_value();
  reducer.Start();
  reducer.MarkReady(1);
  reducer.MarkReady(0);
  reducer.Wait();
  EXPECT_EQ(communicator->reductions, 3) << "one of the cancelled pass, two of the next";
}

TEST(GradientReducer, AFailureEndsTheWaitOnAllRanks) {
  std::vector<std::string> errors(3);
  RunReducingRanks(3, [&](int rank, std::shared_ptr<Communicator> communicator) {
    Gradients gradients(Floats({64, 64, 64}));
    GradientReducer reducer(std::make_shared<WatchedCommunicator>(communicator, rank == 1 ? 2 : -1),
                            gradients.device(), gradients.pointers(), {.buckets = 3});
    reducer.Start();
    for (size_t i = 0; i < 3; ++i) reducer.MarkReady(i);
    try {
      reducer.Wait();
    } catch (const DeviceError& error) {
      errors[rank] = error.what();
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(3, "link 3 is down"));
}

// Records which buckets have been updated, in order, and by which thread.
class UpdateLog {
 public:
  GradientReducer::Update update() {
    return [this](size_t bucket) {
      const std::lock_guard lock(mutex_);
      buckets_.push_back(bucket);
      threads_.push_back(std::this_thread::get_id());
      changed_.notify_all();
    };
  }
  std::vector<size_t> buckets() const {
    const std::lock_guard lock(mutex_);
    return buckets_;
  }
  std::vector<std::thread::id> threads() const {
    const std::lock_guard lock(mutex_);
    return threads_;
  }
  // Waits until this many buckets have been updated.
  void Await(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return buckets_.size() >= count; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<size_t> buckets_;
  std::vector<std::thread::id> threads_;
};

TEST(GradientReducer, UpdatesABucketBeforeTheLastGradientIsThere) {
  RunReducingRanks(2, [&](int rank, std::shared_ptr<Communicator> communicator) {
    Gradients gradients(Floats({64, 64}));
    GradientReducer reducer(communicator, gradients.device(), gradients.pointers(), {.buckets = 2});
    UpdateLog log;
    for (int step = 0; step < 3; ++step) {
      gradients.Fill(rank, step);
      reducer.Start(log.update());
      EXPECT_FALSE(reducer.has_updated());
      reducer.MarkReady(0);
      reducer.MarkUpdatable(0);
      log.Await(2 * step + 1);
      EXPECT_TRUE(reducer.has_updated());
      EXPECT_EQ(gradients[0].host<float>()[3], Gradients::Value(1, step, 0, 3) - 2) << "the mean";
      reducer.MarkReady(1);
      reducer.Wait();
    }
    EXPECT_THAT(log.buckets(), ::testing::ElementsAre(0, 1, 0, 1, 0, 1));
    const auto own = std::this_thread::get_id();
    const std::vector<std::thread::id> threads = log.threads();
    for (size_t i = 0; i < threads.size(); ++i) EXPECT_EQ(threads[i] == own, i % 2 == 1) << i;
  });
}

TEST(GradientReducer, UpdatesNothingThatBackwardStillUses) {
  RunReducingRanks(2, [&](int, std::shared_ptr<Communicator> communicator) {
    Gradients gradients(Floats({64, 32, 32, 64}));
    const auto watched = std::make_shared<WatchedCommunicator>(communicator);
    GradientReducer reducer(watched, gradients.device(), gradients.pointers(), {.buckets = 3});
    UpdateLog log;
    reducer.Start(log.update());
    for (const size_t i : {3, 2, 1, 0}) reducer.MarkReady(i);
    reducer.MarkUpdatable(3);
    reducer.MarkUpdatable(1);
    log.Await(1);
    EXPECT_EQ(watched->reductions, 3);
    EXPECT_THAT(log.buckets(), ::testing::ElementsAre(2)) << "bucket 1 has another parameter";
    reducer.Wait();
    EXPECT_THAT(log.buckets(), ::testing::ElementsAre(2, 0, 1)) << "backward is over";
  });
}

// Running statistics are final before the first gradient is, and are reduced during backward.
TEST(GradientReducer, TakesTheMeanOfBlocksBeforeTheLastGradientIsThere) {
  RunReducingRanks(3, [&](int rank, std::shared_ptr<Communicator> communicator) {
    Gradients gradients(Floats({64}));
    const auto watched = std::make_shared<WatchedCommunicator>(communicator);
    // A narrow wire type rounds only gradients.
    GradientReducer reducer(watched, gradients.device(), gradients.pointers(),
                            {.wire = DType::kBFloat16});
    std::vector<float> floats = {1000.5F * rank, 7.F};
    std::vector<double> doubles = {rank + 1e-9};
    const std::vector<TensorView> blocks = {{{Shape{2}, DType::kFloat}, floats.data()},
                                            {{Shape{1}, DType::kDouble}, doubles.data()}};
    for (const bool has_blocks : {true, false}) {
      const int before = watched->reductions;
      reducer.Start();
      if (has_blocks) {
        reducer.MeanFirst(blocks);
        watched->reductions.Await(before + 2);
        EXPECT_EQ(watched->reductions, before + 2);
      }
      reducer.MarkReady(0);
      reducer.Wait();
      EXPECT_EQ(watched->reductions, before + (has_blocks ? 3 : 1));
    }
    EXPECT_EQ(floats, (std::vector<float>{1000.5F, 7.F}));
    EXPECT_DOUBLE_EQ(doubles[0], 1 + 1e-9);
  });
}

TEST(GradientReducer, ACancelledPassLeavesItsBlocks) {
  Gradients gradients(Floats({64}));
  const auto communicator = std::make_shared<HeldCommunicator>();
  GradientReducer reducer(communicator, gradients.device(), gradients.pointers(), {});
  float number = 0;
  const std::vector<TensorView> blocks(2, {{Shape{1}, DType::kFloat}, &number});
  reducer.Start();
  reducer.MeanFirst(blocks);
  communicator->reductions.Await(1);
  reducer.Cancel();
  communicator->release.set_value();
  reducer.Start();
  reducer.MarkReady(0);
  reducer.Wait();
  EXPECT_EQ(communicator->reductions, 2) << "the first block, and the bucket of the next pass";
}

TEST(GradientReducer, SumsANumberBeforeTheFirstBucket) {
  RunReducingRanks(3, [&](int rank, std::shared_ptr<Communicator> communicator) {
    Gradients gradients(Floats({64}));
    GradientReducer reducer(communicator, gradients.device(), gradients.pointers(), {});
    UpdateLog log;
    const auto reduce = [&](std::optional<double> number) {
      reducer.Start(log.update());
      if (number) reducer.SumFirst(*number);
      reducer.MarkReady(0);
      reducer.Wait();
      return reducer.sum();
    };
    EXPECT_EQ(reduce(rank + 0.5), 4.5);
    EXPECT_EQ(reduce({}), std::nullopt);
    EXPECT_EQ(log.buckets().size(), 2u);
    const double not_a_number = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(std::isnan(reduce(rank == 1 ? not_a_number : 1).value()));
    EXPECT_EQ(log.buckets().size(), 2u) << "all ranks leave the step";
    EXPECT_FALSE(reducer.has_updated());
    EXPECT_EQ(reduce(1.0), 3.0);
    EXPECT_EQ(log.buckets().size(), 3u);
  });
}

TEST(GradientReducer, ACancelledPassUpdatesNoMore) {
  const auto communicator = MakeLocalCommunicators(1)[0];
  Gradients gradients(Floats({64, 64}));
  GradientReducer reducer(communicator, gradients.device(), gradients.pointers(), {.buckets = 2});
  std::promise<void> has_begun, may_end;
  std::atomic<int> updates = 0;
  std::atomic<bool> has_ended = false;
  reducer.Start([&](size_t) {
    if (updates++ > 0) return;
    has_begun.set_value();
    may_end.get_future().wait();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // a thread without waits is faster
    has_ended = true;
  });
  for (const size_t i : {0, 1}) reducer.MarkReady(i), reducer.MarkUpdatable(i);
  has_begun.get_future().wait();
  may_end.set_value();
  reducer.Cancel();
  EXPECT_TRUE(has_ended) << "nobody writes weights after that";
  EXPECT_TRUE(reducer.has_updated());
  EXPECT_EQ(updates, 1);
  UpdateLog log;
  reducer.Start(log.update());
  for (const size_t i : {0, 1}) reducer.MarkReady(i);
  reducer.Wait();
  EXPECT_THAT(log.buckets(), ::testing::ElementsAre(0, 1));
}

TEST(GradientReducer, AnUpdateThatFailsEndsTheWaitOnAllRanks) {
  std::vector<std::string> errors(2);
  RunReducingRanks(2, [&](int rank, std::shared_ptr<Communicator> communicator) {
    std::latch begun(1);
    Gradients gradients(Floats({64, 64}));
    GradientReducer reducer(communicator, gradients.device(), gradients.pointers(), {.buckets = 2});
    reducer.Start([&](size_t bucket) {
      if (bucket == 0) begun.count_down();
      if (rank == 1) throw DeviceError("no kernel today");
    });
    reducer.MarkReady(0);
    reducer.MarkUpdatable(0);
    begun.wait();
    if (rank == 0) {  // reaches the next bucket alone
      reducer.MarkReady(1);
      reducer.MarkUpdatable(1);
    }
    try {
      reducer.Wait();
    } catch (const DeviceError& error) {
      errors[rank] = error.what();
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2, "no kernel today"));
}

TEST(GradientReducer, NeedsABucket) {
  const auto communicator = MakeLocalCommunicators(1)[0];
  Gradients gradients(Floats({1}));
  EXPECT_THROW(
      GradientReducer(communicator, gradients.device(), gradients.pointers(), {.buckets = 0}),
      InvalidArgument);
}

}  // namespace
}  // namespace caffe
