#include "caffe/solvers/data_parallel.hpp"

#include "caffe/net/training_net.hpp"
#include "caffe/solvers/statistics_keeper.hpp"
#include "caffe/trace.hpp"

namespace caffe {

DataParallel::DataParallel(std::shared_ptr<Communicator> communicator, Trace* trace)
    : communicator_(std::move(communicator)),
      ranks_(communicator_ != nullptr ? communicator_->ranks() : 1),
      trace_(trace) {}

void DataParallel::Attach(Net& net, int reduce_buckets) {
  if (ranks_ == 1) return;
  device_ = TrainingNet(net).device();
  const std::vector<SyncedTensor*> gradients = TrainingNet(net).executor().Gradients();
  for (size_t i = 0; i < gradients.size(); ++i) index_[gradients[i]] = i;
  statistics_ = RunningStatistics(TrainingNet(net));
  reducer_.emplace(communicator_, *device_, gradients, reduce_buckets, trace_);
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
  parallel_.reducer_->Wait();
  is_finished_ = true;
  parallel_.ReduceStatistics();
}

void DataParallel::ReduceStatistics() {
  for (SyncedTensor* tensor : statistics_) {
    communicator_->AllReduceMean(tensor->View(), device_->compute_stream());
    tensor->MarkWritten();
  }
}

double DataParallel::Mean(double number) {
  if (ranks_ == 1) return number;
  communicator_->AllReduceSum({&number, 1});
  return number / ranks_;
}

int DataParallel::OfRoot(int number) {
  if (ranks_ == 1) return number;
  double root = is_root() ? number : 0;
  communicator_->AllReduceSum({&root, 1});
  return static_cast<int>(root);
}

void DataParallel::Share(std::vector<std::vector<double>>* batches) {
  if (ranks_ == 1) return;
  std::vector<double> sizes;
  for (const std::vector<double>& batch : *batches) {
    sizes.push_back(static_cast<double>(batch.size()));
  }
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
