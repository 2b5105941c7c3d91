#include "caffe/solvers/data_parallel.hpp"

#include "caffe/error.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/solvers/statistics_keeper.hpp"
#include "caffe/trace.hpp"

namespace caffe {

DataParallel::DataParallel(std::shared_ptr<Communicator> communicator, Trace* trace)
    : communicator_(std::move(communicator)),
      ranks_(communicator_ != nullptr ? communicator_->ranks() : 1),
      name_(StrCat("worker ", communicator_ != nullptr ? communicator_->rank() : 0)),
      trace_(trace) {}

void DataParallel::Attach(Net& net, int reduce_buckets) {
  if (ranks_ == 1) return;
  device_ = TrainingNet(net).device();
  const std::vector<SyncedTensor*> gradients = TrainingNet(net).executor().Gradients();
  for (size_t i = 0; i < gradients.size(); ++i) index_[gradients[i]] = i;
  for (const std::shared_ptr<Layer>& layer : net.layers()) {
    if (auto* one = dynamic_cast<SumsOverRanks*>(layer.get())) summing_layers_.push_back(one);
  }
  statistics_ = RunningStatistics(TrainingNet(net));
  reducer_.emplace(communicator_, *device_, gradients, reduce_buckets, trace_);
}

void DataParallel::LetLayersSum(bool do_sum) {
  SumsOverRanks::Sum sum;
  if (do_sum) {
    sum = [this](std::span<double> numbers) {
      const Activity waiting = WaitForOthers("waits for the others' statistics, as");
      communicator_->AllReduceSumInPass(numbers);
    };
  }
  for (SumsOverRanks* layer : summing_layers_) layer->SetSum(sum);
}

DataParallel::Reduction::Reduction(DataParallel& parallel) : parallel_(parallel) {
  if (parallel.ranks_ == 1) return;
  parallel.reducer_->Start();
  listener_ = [&parallel](const SyncedTensor& gradient) {
    parallel.reducer_->MarkReady(parallel.index_.at(&gradient));
  };
}

DataParallel::Reduction::~Reduction() {
  if (parallel_.ranks_ == 1 || is_finished_) return;
  parallel_.reducer_->Cancel();
}

void DataParallel::Reduction::Finish() {
  if (parallel_.ranks_ == 1) return;
  const TraceSpan span("wait for reduction");
  const Activity waiting = parallel_.WaitForOthers("waits for the others' gradients, as");
  parallel_.reducer_->Wait();
  is_finished_ = true;
  parallel_.ReduceStatistics();
}

Activity DataParallel::WaitForOthers(const char* what) const {
  return Activity("reduction", what, name_,
                  [this](const std::exception_ptr& error) { communicator_->Abort(error); });
}

void DataParallel::ReduceStatistics() {
  for (SyncedTensor* tensor : statistics_) {
    communicator_->AllReduceMean(tensor->View(), device_->compute_stream());
    tensor->MarkWritten();
  }
}

double DataParallel::Mean(double number) {
  if (ranks_ == 1) return number;
  const Activity waiting = WaitForOthers("waits for the others' loss, as");
  communicator_->AllReduceSum({&number, 1});
  return number / ranks_;
}

int DataParallel::OfRoot(int number) {
  if (ranks_ == 1) return number;
  double root = is_root() ? number : 0;
  const Activity waiting = WaitForOthers("waits for a decision, as");
  communicator_->AllReduceSum({&root, 1});
  return static_cast<int>(root);
}

void DataParallel::Share(std::vector<std::vector<double>>* batches) {
  if (ranks_ == 1) return;
  std::vector<double> sizes;
  for (const std::vector<double>& batch : *batches) {
    sizes.push_back(static_cast<double>(batch.size()));
  }
  const Activity waiting = WaitForOthers("waits for the others' tests, as");
  communicator_->AllReduceSum(sizes);
  std::vector<double> numbers;
  for (size_t i = 0; i < sizes.size(); ++i) {
    (*batches)[i].resize(static_cast<size_t>(sizes[i]));  // zeros where another rank has them
    numbers.insert(numbers.end(), (*batches)[i].begin(), (*batches)[i].end());
  }
  communicator_->AllReduceSum(numbers);
  auto next = numbers.begin();
  for (std::vector<double>& batch : *batches) {
    std::copy_n(next, batch.size(), batch.begin());
    next += static_cast<std::ptrdiff_t>(batch.size());
  }
}

}  // namespace caffe
