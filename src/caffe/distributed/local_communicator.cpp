#include "caffe/distributed/local_communicator.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>

#include "caffe/error.hpp"

namespace caffe {
namespace {

// What the ranks share.
class Group {
 public:
  explicit Group(int ranks) : tensors(static_cast<size_t>(ranks)) {}

  // Waits for all ranks. An abort ends that, unless they have all come by then.
  void ArriveAndWait() { Wait(/*heeds_abort=*/true); }
  // The same after a meeting: all ranks are on their way here, and none may leave before the last,
  // which still uses the others' memory. So an abort has to wait.
  void LeaveTogether() { Wait(/*heeds_abort=*/false); }

  void Abort(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

  std::vector<TensorView> tensors;  // of the collective under way, by rank

 private:
  void Wait(bool heeds_abort) {
    std::unique_lock lock(mutex_);
    if (heeds_abort && error_) std::rethrow_exception(error_);
    const uint64_t meeting = meetings_;
    if (++arrived_ == tensors.size()) {
      arrived_ = 0;
      ++meetings_;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return meetings_ != meeting || (heeds_abort && error_); });
    if (meetings_ == meeting) std::rethrow_exception(error_);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t arrived_ = 0;
  uint64_t meetings_ = 0;
  std::exception_ptr error_;
};

// tensors[i][k] = factor * (tensors[0][k] + tensors[1][k] + ...), for k in [begin, end).
template <typename T>
void SumRange(const std::vector<TensorView>& tensors, int64_t begin, int64_t end, double factor) {
  std::array<double, 512> sums;
  for (int64_t block = begin; block < end; block += sums.size()) {
    const int64_t count = std::min<int64_t>(sums.size(), end - block);
    std::fill_n(sums.begin(), count, 0.0);
    for (const TensorView& tensor : tensors) {
      const T* values = tensor.as<T>() + block;
      for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<double>(values[i]);
    }
    for (const TensorView& tensor : tensors) {
      T* values = tensor.as<T>() + block;
      for (int64_t i = 0; i < count; ++i) values[i] = T(sums[i] * factor);
    }
  }
}

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Group> group, std::shared_ptr<Group> in_pass, int rank)
      : group_(std::move(group)), in_pass_(std::move(in_pass)), rank_(rank) {}

  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(group_->tensors.size()); }

  void AllReduceMean(const TensorView& tensor, Stream& filled_by) override {
    filled_by.Synchronize();
    Reduce(*group_, tensor, 1.0 / ranks());
  }
  void AllReduceSum(std::span<double> numbers) override { Sum(*group_, numbers); }
  void AllReduceSumInPass(std::span<double> numbers) override { Sum(*in_pass_, numbers); }
  void Abort(std::exception_ptr error) override {
    group_->Abort(error);
    in_pass_->Abort(error);
  }

 private:
  void Sum(Group& group, std::span<double> numbers) {
    const Shape shape{static_cast<int64_t>(numbers.size())};
    Reduce(group, {{shape, DType::kDouble}, numbers.data()}, 1);
  }

  // Each rank adds up its share of the elements for all.
  void Reduce(Group& group, const TensorView& tensor, double factor) {
    group.tensors[rank_] = tensor;
    group.ArriveAndWait();
    const bool are_alike =
        std::all_of(group.tensors.begin(), group.tensors.end(), [&](const TensorView& other) {
          return other.count() == tensor.count() && other.dtype == tensor.dtype;
        });
    if (are_alike) {
      const int64_t count = tensor.count(), begin = count * rank_ / ranks(),
                    end = count * (rank_ + 1) / ranks();
      VisitFloat(tensor.dtype,
                 [&]<typename T>(TypeTag<T>) { SumRange<T>(group.tensors, begin, end, factor); });
    }
    group.LeaveTogether();
    if (!are_alike) {
      throw InvalidArgument(StrCat("rank ", rank_, ": a tensor of ", tensor.count(), " ",
                                   Name(tensor.dtype),
                                   " meets others on other ranks; train the same net on all"));
    }
  }

  const std::shared_ptr<Group> group_, in_pass_;
  const int rank_;
};

}  // namespace

std::vector<std::shared_ptr<Communicator>> MakeLocalCommunicators(int ranks) {
  Require(ranks > 0, "there cannot be ", ranks, " ranks; give a positive number");
  const auto group = std::make_shared<Group>(ranks), in_pass = std::make_shared<Group>(ranks);
  std::vector<std::shared_ptr<Communicator>> communicators;
  for (int rank = 0; rank < ranks; ++rank) {
    communicators.push_back(std::make_shared<LocalCommunicator>(group, in_pass, rank));
  }
  return communicators;
}

}  // namespace caffe
