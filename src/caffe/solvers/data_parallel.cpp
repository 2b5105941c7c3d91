#include "caffe/solvers/data_parallel.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <thread>
#include <utility>

#include "caffe/core/host_name.hpp"
#include "caffe/distributed/threads_of_rank.hpp"
#include "caffe/error.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/solvers/statistics_keeper.hpp"
#include "caffe/tensor/proto_dtype.hpp"
#include "caffe/trace.hpp"

namespace caffe {

namespace {

int ThreadsOfProcess(Communicator& communicator) {
  const std::vector<std::string> hosts = communicator.AllGather(HostName());
  const auto here = std::count(hosts.begin(), hosts.end(), hosts[communicator.rank()]);
  return ThreadsOfRank(static_cast<int>(here), omp_get_max_threads());
}

GradientReducer::Options ReductionOptions(const NetParameter& net, Trace* trace) {
  GradientReducer::Options options{.buckets = net.reduce_buckets(), .trace = trace};
  if (net.has_reduce_type()) options.wire = DTypeFromProto(net.reduce_type(), "reduce_type");
  return options;
}

}  // namespace

DataParallel::DataParallel(std::shared_ptr<Communicator> communicator, Trace* trace)
    : communicator_(std::move(communicator)),
      ranks_(communicator_ != nullptr ? communicator_->ranks() : 1),
      name_(StrCat("worker ", communicator_ != nullptr ? communicator_->rank() : 0)),
      trace_(trace) {
  if (spans_processes()) threads_ = ThreadsOfProcess(*communicator_);
}

void DataParallel::Attach(Net& net) {
  const GradientReducer::Options options = ReductionOptions(net.definition(), trace_);
  if (ranks_ == 1) return;
  net_.emplace(net);
  device_ = TrainingNet(net).device();
  exchange_ = TrainingNet(net).exchange();
  std::vector<SyncedTensor*> gradients = TrainingNet(net).executor().Gradients();
  for (const SplitParam& split : TrainingNet(net).SplitParams())  // complete on the owning rank
    std::erase(gradients, &split.blob->diff_tensor());
  for (size_t i = 0; i < gradients.size(); ++i) index_[gradients[i]] = i;
  for (const std::shared_ptr<Layer>& layer : net.layers()) {
    if (auto* one = dynamic_cast<SumsOverRanks*>(layer.get())) summing_layers_.push_back(one);
  }
  MakeStatistics(net);
  reducer_ = MakeThreaded<GradientReducer>(communicator_, *device_, gradients, options);
}

void DataParallel::MakeStatistics(Net& net) {
  std::set<const SyncedTensor*> updated;
  for (const Net::LearnableParam& param : net.learnable_params()) {
    if (param.lr_mult != 0) updated.insert(&param.blob->data_tensor());
  }
  std::vector<SyncedTensor*> statistics, weights;
  for (SyncedTensor* tensor : RunningStatistics(TrainingNet(net)))
    (updated.contains(tensor) ? weights : statistics).push_back(tensor);
  const Graph& graph = TrainingNet(net).graph();
  statistics_.emplace(device_, graph, statistics);
  written_weights_.emplace(device_, graph, weights);
  weights_gathered_ = device_->MakeEvent();
}

void DataParallel::AwaitAllRanks() {
  if (ranks_ == 1) return;
  const Activity waiting = WaitForOthers("waits for the others, as");
  double none = 0;
  communicator_->AllReduceSumInPass({&none, 1});
}

std::chrono::duration<double> DataParallel::SumDuringReduction(std::span<double> numbers) {
  const auto begin = std::chrono::steady_clock::now();
  communicator_->AllReduceSumInPass(numbers);
  return std::chrono::steady_clock::now() - begin;
}

// Called after all buckets are updated, because weights gathered earlier would be stale.
void DataParallel::ReduceWrittenWeights() {
  if (written_weights_->blocks().empty()) return;
  written_weights_->Gather();
  device_->compute_stream().Record(*weights_gathered_);
  if (IsFirstReduction()) AwaitAllRanks();
  for (const TensorView& block : written_weights_->blocks())
    communicator_->AllReduceMean(block, block.dtype, *weights_gathered_);
  written_weights_->Scatter();
}

void DataParallel::LetLayersSum(bool do_sum) {
  SumsOverRanks::Exchange exchange;
  if (exchange_ != nullptr) exchange_->call = {};
  if (do_sum && exchange_ != nullptr) {
    exchange_->call = [this](auto sent, auto received) {
      const Activity waiting = WaitForOthers("waits for the others' part of a layer, as");
      communicator_->ExchangeInPass(sent, received);
    };
  }
  if (do_sum) {
    exchange.sum = [this](std::span<double> numbers) {
      const Activity waiting = WaitForOthers("waits for the others' statistics, as");
      communicator_->AllReduceSumInPass(numbers);
    };
    exchange.gather = [this](const std::vector<double>& own) {
      const Activity waiting = WaitForOthers("waits for the others' statistics, as");
      std::vector<std::vector<double>> all(ranks_, std::vector<double>(own.size()));
      const std::vector<std::span<const char>> sent(
          ranks_, {reinterpret_cast<const char*>(own.data()), own.size() * sizeof(double)});
      std::vector<std::span<char>> received;
      for (std::vector<double>& one : all)
        received.push_back({reinterpret_cast<char*>(one.data()), one.size() * sizeof(double)});
      communicator_->ExchangeInPass(sent, received);
      return all;
    };
  }
  for (SumsOverRanks* layer : summing_layers_) layer->SetExchange(exchange);
}

namespace {

// Kernels run by any thread other than the computing one use one thread, to leave the processor to
// it.
GradientReducer::Update WithOneThreadElsewhere(GradientReducer::Update update) {
  if (!update) return update;
  return [update = std::move(update), computes = std::this_thread::get_id()](size_t bucket) {
    if (std::this_thread::get_id() != computes) omp_set_num_threads(1);
    update(bucket);
  };
}

}  // namespace

DataParallel::Reduction::Reduction(DataParallel& parallel, GradientReducer::Update update)
    : parallel_(parallel) {
  if (parallel.ranks_ == 1) return;
  const bool updates = static_cast<bool>(update);
  Require(IsOfThisProcess(parallel.reducer_),
          "solver: its workers are in the process that made it, and fork() does not copy threads; "
          "make the solver in this process");
  parallel.reducer_->Start(WithOneThreadElsewhere(std::move(update)));
  listener_.on_final = [this](const SyncedTensor& gradient) {
    if (HoldsBack()) {
      held_back_.push_back(&gradient);
    } else {
      TakeFinal(gradient);
    }
  };
  if (updates) {
    listener_.on_updatable = [&parallel](const SyncedTensor& gradient) {
      if (const auto index = parallel.IndexOf(gradient)) parallel.reducer_->MarkUpdatable(*index);
    };
  }
  listener_.is_awaited = [&parallel](const SyncedTensor& gradient) {
    const auto index = parallel.IndexOf(gradient);
    return index && parallel.reducer_->IsAwaited(*index);
  };
}

DataParallel::Reduction::~Reduction() {
  if (parallel_.ranks_ == 1 || is_finished_) return;
  parallel_.reducer_->Cancel();
}

// A GPU can load a kernel's code, allocate memory or instantiate a captured graph only after all
// its work is done, and meanwhile the driver may keep the process's other GPUs from launching. A
// reduction in flight waits for other ranks. So no reduction starts while this rank's pass does any
// of these or, in the first iterations, while another rank's pass does.
bool DataParallel::Reduction::HoldsBack() const {
  if (parallel_.device_->is_host_accessible()) return false;
  return parallel_.IsFirstReduction() || !parallel_.net_->executor().is_settled();
}

void DataParallel::Reduction::TakeFinal(const SyncedTensor& gradient) {
  SendStatistics();
  if (const auto index = parallel_.IndexOf(gradient)) parallel_.reducer_->MarkReady(*index);
}

// The forward pass is over when the first gradient is final, so statistics are sent during
// backward.
void DataParallel::Reduction::SendStatistics() {
  if (std::exchange(has_sent_statistics_, true) || parallel_.statistics_->blocks().empty()) return;
  GatherStatistics();
  parallel_.reducer_->MeanFirst(parallel_.statistics_->blocks());
}

void DataParallel::Reduction::GatherStatistics() {
  if (!std::exchange(has_gathered_statistics_, true)) parallel_.statistics_->Gather();
}

void DataParallel::Reduction::TakeLoss(double loss) {
  has_sent_loss_ = true;
  if (parallel_.ranks_ > 1) parallel_.reducer_->SumFirst(loss);
}

double DataParallel::Reduction::Finish(double loss) {
  if (parallel_.ranks_ == 1) return loss;
  double sum = loss;
  {
    const TraceSpan span("wait for reduction");
    const Activity waiting = parallel_.WaitForOthers("waits for the others' gradients, as");
    if (parallel_.IsFirstReduction()) {
      GatherStatistics();  // loads its kernel
      parallel_.AwaitAllRanks();
    }
    for (const SyncedTensor* gradient : held_back_) TakeFinal(*gradient);
    SendStatistics();  // for a net without gradients
    if (!has_sent_loss_) parallel_.waited_ += parallel_.SumDuringReduction({&sum, 1});
    parallel_.waited_ += parallel_.reducer_->Wait();
    is_finished_ = true;
    parallel_.statistics_->Scatter();
    parallel_.ReduceWrittenWeights();
    ++parallel_.reductions_;
  }
  return parallel_.reducer_->sum().value_or(sum) / parallel_.ranks_;
}

// Empty for gradients that are not reduced, because each rank has its own part of them.
std::optional<size_t> DataParallel::IndexOf(const SyncedTensor& gradient) const {
  const auto found = index_.find(&gradient);
  return found == index_.end() ? std::nullopt : std::optional(found->second);
}

Activity DataParallel::WaitForOthers(const char* what) const {
  return Activity("reduction", what, name_,
                  [this](const std::exception_ptr& error) { communicator_->Abort(error); });
}

std::string DataParallel::ReportWaits(int iteration) {
  constexpr int kIterations = 100;
  if (ranks_ == 1 || !is_root()) return "";
  const auto now = std::chrono::steady_clock::now();
  if (iterations_++ == 0) {  // the first iteration is slower than the others
    begin_ = now;
    waited_ = {};
    return "";
  }
  if (iterations_ <= kIterations) return "";
  const double all = std::chrono::duration<double>(now - begin_).count() / kIterations;
  const double waited = waited_.count() / kIterations;
  iterations_ = 1;
  begin_ = now;
  waited_ = {};
  char text[160];
  std::snprintf(text, sizeof text,
                "Iterations %d to %d: %.1f%% of %.4g ms waited for the reduction of gradients",
                iteration - kIterations, iteration, 100 * waited / all, 1000 * all);
  return text;
}

double DataParallel::Mean(double number) {
  if (ranks_ == 1) return number;
  const Activity waiting = WaitForOthers("waits for the others' loss, as");
  communicator_->AllReduceSum({&number, 1});
  return number / ranks_;
}

void DataParallel::Sum(std::span<double> numbers) {
  if (ranks_ == 1) return;
  const Activity waiting = WaitForOthers("waits for a decision, as");
  communicator_->AllReduceSum(numbers);
}

std::string DataParallel::BroadcastFromRoot(const std::string& text) {
  if (!spans_processes()) return text;
  const Activity waiting = WaitForOthers("waits for a decision, as");
  return communicator_->AllGather(text).front();
}

std::string DataParallel::FirstText(const std::string& text) {
  if (ranks_ == 1) return text;
  const Activity waiting = WaitForOthers("waits for what the others have found, as");
  for (const std::string& one : communicator_->AllGather(text)) {
    if (!one.empty()) return one;
  }
  return "";
}

void DataParallel::UseShareOfThreads() const {
  if (threads_ > 0) omp_set_num_threads(threads_);
}

void DataParallel::Agree(const std::vector<Fact>& facts) {
  if (!spans_processes()) return;
  const Activity waiting = WaitForOthers("compares itself with the others, as");
  CheckAgreement(*communicator_, facts);
}

void DataParallel::GatherParts(const SplitParam& param, SyncedTensor* tensor) {
  const auto element = static_cast<int64_t>(SizeOf(tensor->desc().dtype));
  const auto begin = [&](int rank) { return param.Begin(*exchange_, rank) * element; };
  char* const elements = static_cast<char*>(tensor->data());
  const Activity waiting = WaitForOthers("gathers the parts of layers, as");
  const std::vector<std::string> parts =
      communicator_->AllGather({elements + begin(rank()), elements + begin(rank() + 1)});
  for (int other = 0; other < ranks_; ++other) {
    CAFFE_ASSERT(static_cast<int64_t>(parts[other].size()) == begin(other + 1) - begin(other));
    std::copy(parts[other].begin(), parts[other].end(), elements + begin(other));
  }
  tensor->MarkWritten();
}

bool DataParallel::TakeFromRoot(const std::vector<SyncedTensor*>& tensors) {
  bool differed = false;
  if (!spans_processes()) return differed;
  const Activity waiting = WaitForOthers("takes rank 0's weights, as");
  for (SyncedTensor* tensor : tensors) {
    const std::string own = ElementsOf(*tensor, *device_);
    const std::string root = communicator_->AllGather(is_root() ? own : "").front();
    if (root.size() != own.size()) throw InternalError("rank 0 has other weights");
    if (root == own) continue;
    differed = true;
    device_->CopyFromHost(tensor->data(), root.data(), root.size());
    tensor->MarkWritten();
  }
  return differed;
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
    (*batches)[i].resize(static_cast<size_t>(sizes[i]));  // zeros for batches of other ranks
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
