#include "caffe/distributed/gradient_reducer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <sstream>
#include <thread>

#include "caffe/distributed/local_communicator.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

// Gradients of one rank, each of its own size, filled with numbers that tell rank and place.
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
      tensors_[i].data();  // written back
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
  // Of 4 * 1216 bytes with padding to 64; a third is 1622.
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
      // In another order on each rank and in each step.
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
  std::vector<std::string> AllGather(const std::string& text) override {
    return inner_->AllGather(text);
  }
  void Abort(std::exception_ptr error) override { inner_->Abort(std::move(error)); }
  void ThrowIfAborted() override { inner_->ThrowIfAborted(); }

  std::atomic<int> reductions = 0;

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
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (watched->reductions == 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
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
    if (reductions++ == 0) release.get_future().wait();
  }
  void AllReduceSum(std::span<double>) override {}
  void AllReduceSumInPass(std::span<double>) override {}
  std::vector<std::string> AllGather(const std::string& text) override { return {text}; }
  void Abort(std::exception_ptr) override {}
  void ThrowIfAborted() override {}

  std::atomic<int> reductions = 0;
  std::promise<void> release;
};

TEST(GradientReducer, APassMayBeCancelledWhileABucketIsInFlight) {
  Gradients gradients(Floats({64, 64}));
  const auto communicator = std::make_shared<HeldCommunicator>();
  GradientReducer reducer(communicator, gradients.device(), gradients.pointers(), {.buckets = 2});
  reducer.Start();
  reducer.MarkReady(0);
  while (communicator->reductions == 0) std::this_thread::yield();
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

TEST(GradientReducer, NeedsABucket) {
  const auto communicator = MakeLocalCommunicators(1)[0];
  Gradients gradients(Floats({1}));
  EXPECT_THROW(
      GradientReducer(communicator, gradients.device(), gradients.pointers(), {.buckets = 0}),
      InvalidArgument);
}

}  // namespace
}  // namespace caffe
