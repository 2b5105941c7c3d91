#include "caffe/distributed/local_communicator.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "caffe/distributed/rank_order_sum.hpp"
#include "caffe/distributed/wire_type.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

// State that the ranks share.
class Group {
 public:
  explicit Group(int ranks)
      : tensors(static_cast<size_t>(ranks)),
        texts(static_cast<size_t>(ranks)),
        sent(static_cast<size_t>(ranks)) {}

  // All ranks are here and see each other's memory, until all have ended their meeting.
  class Meeting {
   public:
    // An abort ends the waiting, unless all have come by then.
    explicit Meeting(Group& group) : group_(group) { group.Wait(/*heeds_abort=*/true); }
    // All ranks are on their way here, and none may leave before the last, which still uses the
    // others' memory. So an abort has to wait.
    ~Meeting() { group_.Wait(/*heeds_abort=*/false); }
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

   private:
    Group& group_;
  };

  void Abort(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

  void ThrowIfAborted() {
    std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

  // Operands of the current collective, by rank.
  std::vector<TensorView> tensors;
  std::vector<const std::string*> texts;
  std::vector<std::span<const std::span<const char>>> sent;

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

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Group> group, std::shared_ptr<Group> in_pass, int rank)
      : group_(std::move(group)), in_pass_(std::move(in_pass)), rank_(rank) {}

  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(group_->tensors.size()); }
  int ranks_in_process() const override { return ranks(); }

  void AllReduceMean(const TensorView& tensor, DType wire, Event& filled) override {
    filled.Synchronize();
    Reduce(*group_, tensor, WireType(tensor.dtype, wire), 1.0 / ranks());
  }
  void AllReduceSum(std::span<double> numbers) override { Sum(*group_, numbers); }
  void AllReduceSumInPass(std::span<double> numbers) override { Sum(*in_pass_, numbers); }
  void ExchangeInPass(std::span<const std::span<const char>> sent,
                      std::span<const std::span<char>> received) override {
    in_pass_->sent[rank_] = sent;
    const Group::Meeting meeting(*in_pass_);
    for (int other = 0; other < ranks(); ++other) {
      const std::span<const char> bytes = in_pass_->sent[other][rank_];
      Require(bytes.size() == received[other].size(), "rank ", rank_, ": ", received[other].size(),
              " bytes meet ", bytes.size(), " of rank ", other, "; train the same net on all");
      std::memcpy(received[other].data(), bytes.data(), bytes.size());
    }
  }
  std::vector<std::string> AllGather(const std::string& text) override {
    group_->texts[rank_] = &text;
    const Group::Meeting meeting(*group_);
    std::vector<std::string> texts;
    for (const std::string* one : group_->texts) texts.push_back(*one);
    return texts;
  }
  void Abort(std::exception_ptr error) override {
    group_->Abort(error);
    in_pass_->Abort(error);
  }
  void ThrowIfAborted() override { group_->ThrowIfAborted(); }

 private:
  void Sum(Group& group, std::span<double> numbers) {
    const Shape shape{static_cast<int64_t>(numbers.size())};
    Reduce(group, {{shape, DType::kDouble}, numbers.data()}, DType::kDouble, 1);
  }

  // Each rank adds up its share of the elements for all.
  void Reduce(Group& group, const TensorView& tensor, DType wire, double factor) {
    group.tensors[rank_] = tensor;
    const Group::Meeting meeting(group);
    const bool are_alike =
        std::all_of(group.tensors.begin(), group.tensors.end(), [&](const TensorView& other) {
          return other.count() == tensor.count() && other.dtype == tensor.dtype;
        });
    if (!are_alike) {
      throw InvalidArgument(StrCat("rank ", rank_, ": a tensor of ", tensor.count(), " ",
                                   Name(tensor.dtype),
                                   " meets others on other ranks; train the same net on all"));
    }
    const int64_t count = tensor.count();
    std::vector<void*> all;
    for (const TensorView& one : group.tensors) all.push_back(one.data);
    SumInRankOrder(tensor.dtype, wire, all, all, count * rank_ / ranks(),
                   count * (rank_ + 1) / ranks(), factor);
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
