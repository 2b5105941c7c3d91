#include "tests/fuzz/cluster/planted_communicator.hpp"

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fuzz/cluster/simulation.hpp"

namespace caffe::fuzz {
namespace {

void WaitForEver() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

class PlantedCommunicator final : public Communicator {
 public:
  PlantedCommunicator(Plant plant, std::shared_ptr<Communicator> real)
      : plant_(plant), real_(std::move(real)) {}

  int rank() const override { return real_->rank(); }
  int ranks() const override { return real_->ranks(); }
  int ranks_in_process() const override { return real_->ranks_in_process(); }

  void AllReduceMean(const TensorView& tensor, DType wire, Event& filled) override {
    if (plant_ == Plant::kSumInOrderOfArrival && tensor.dtype == DType::kFloat) {
      return SumFrom(&tensor);
    }
    Heeding([&] { real_->AllReduceMean(tensor, wire, filled); });
  }
  void AllReduceSum(std::span<double> numbers) override {
    Heeding([&] { real_->AllReduceSum(numbers); });
  }
  void AllReduceSumInPass(std::span<double> numbers) override {
    Heeding([&] { real_->AllReduceSumInPass(numbers); });
  }
  void ExchangeInPass(std::span<const std::span<const char>> sent,
                      std::span<const std::span<char>> received) override {
    Heeding([&] { real_->ExchangeInPass(sent, received); });
  }
  std::vector<std::string> AllGather(const std::string& text) override {
    std::vector<std::string> texts;
    Heeding([&] { texts = real_->AllGather(text); });
    return texts;
  }
  void Abort(std::exception_ptr error) override {
    if (plant_ == Plant::kKeepsErrorToItself) WaitForEver();
    real_->Abort(error);
  }
  void ThrowIfAborted() override { real_->ThrowIfAborted(); }

 private:
  template <typename Work>
  void Heeding(const Work& work) {
    try {
      work();
    } catch (const std::exception&) {
      if (plant_ == Plant::kIgnoresLoss) WaitForEver();
      throw;
    }
  }

  // Sums in an order that depends on time, equal on all ranks.
  void SumFrom(const TensorView* tensor) {
    const auto* own = tensor->as<char>();
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const std::vector<std::string> times = AllGather(std::to_string(now / 1000));
    const std::vector<std::string> all = AllGather(std::string(own, tensor->bytes()));
    const size_t first = std::stoull(times[0]) % all.size();
    auto* const sums = tensor->as<float>();
    for (int64_t i = 0; i < tensor->count(); ++i) {
      float sum = 0;
      for (size_t rank = 0; rank < all.size(); ++rank) {
        float value;
        std::memcpy(&value, all[(first + rank) % all.size()].data() + i * sizeof value,
                    sizeof value);
        sum += value;
      }
      sums[i] = sum / static_cast<float>(all.size());
    }
  }

  const Plant plant_;
  const std::shared_ptr<Communicator> real_;
};

}  // namespace

const char* NameOf(Plant plant) {
  constexpr const char* kNames[kPlants] = {
      "none",         "sum in order of arrival", "error kept to itself",
      "loss ignored", "files named at once",     "no synchronization",
      "record shift"};
  return kNames[static_cast<int>(plant)];
}

std::shared_ptr<Communicator> WithPlant(Plant plant, std::shared_ptr<Communicator> communicator) {
  if (plant != Plant::kSumInOrderOfArrival && plant != Plant::kKeepsErrorToItself &&
      plant != Plant::kIgnoresLoss) {
    return communicator;
  }
  return std::make_shared<PlantedCommunicator>(plant, std::move(communicator));
}

}  // namespace caffe::fuzz
