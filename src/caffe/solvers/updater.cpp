#include "caffe/solvers/updater.hpp"

#include <algorithm>
#include <atomic>
#include <map>

namespace caffe {
namespace {

// Never returns the same number twice, even for two updaters of one net.
uint64_t NextVersion() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

Updater::Updater(const UpdateRule& rule, const ops::DecideStep& decide, Net& net,
                 const std::vector<std::vector<SyncedTensor*>>& buckets, const SumOverRanks& others,
                 const UpdaterOptions& options)
    : rule_(rule), net_(net), decide_(decide), device_(net_.device()) {
  const std::vector<LearningParameter> parameters = LearningParameters(net, options.factors);
  const TensorDesc desc{Shape{ops::kStepNumbers}, DType::kDouble};
  step_memory_ = device_->Allocate(desc.bytes());
  step_ = {desc, step_memory_.get()};
  const bool is_decided_by_all = decide_.clip_gradients >= 0 || decide_.scaling.is_on();
  updates_ = SplitByBucket(is_decided_by_all ? std::vector<std::vector<SyncedTensor*>>() : buckets,
                           parameters, others);
  version_ = NextVersion();
  WriteState({});
  if (decide_.scaling.is_on() && !parameters.empty())
    statistics_ = std::make_unique<StatisticsKeeper>(net_);
  if (options.ema_decay <= 0) return;
  std::vector<Net::LearnableParam> learning;
  for (const LearningParameter& one : parameters) learning.push_back(one.param);
  average_ = std::make_unique<WeightAverage>(net_, learning, options.ema_decay, decide_.decides());
}

// Creates history for every parameter, including those that do not learn.
std::vector<LearningParameter> Updater::LearningParameters(
    const Net& net, const std::vector<ParamFactors>& factors) {
  std::vector<LearningParameter> learning;
  std::vector<std::vector<std::shared_ptr<Blob>>> states;
  learnable_ = net.learnable_params().size();
  for (size_t i = 0; i < learnable_; ++i) {
    Net::LearnableParam param = net.learnable_params()[i];
    const TensorDesc desc = param.blob->data_tensor().desc();
    auto& own = states.emplace_back();
    for (int k = 0; k < rule_.num_states(); ++k)
      own.push_back(std::make_shared<Blob>(device_, desc.shape, desc.dtype));
    if (!factors.empty()) {
      param.lr_mult *= static_cast<float>(factors[i].lr_mult);
      param.decay_mult *= static_cast<float>(factors[i].decay_mult);
    }
    if (param.lr_mult == 0) continue;           // frozen
    if (decide_.larc.is_on) param.lr_mult = 1;  // replaced by LARC's own factor
    learning.push_back({param, i, own, OwnPart(*param.blob)});
  }
  for (int k = 0; k < rule_.num_states(); ++k) {
    for (const auto& own : states) history_.push_back(own[k]);
  }
  return learning;
}

std::optional<PartOfParameter> Updater::OwnPart(const Blob& blob) const {
  for (const SplitParam& split : net_.SplitParams()) {
    if (split.blob.get() != &blob) continue;
    const RankExchange& exchange = *net_.exchange();
    const int64_t begin = split.Begin(exchange, exchange.rank);
    return PartOfParameter{begin, split.Begin(exchange, exchange.rank + 1) - begin};
  }
  return std::nullopt;
}

std::vector<std::unique_ptr<ParameterUpdate>> Updater::SplitByBucket(
    const std::vector<std::vector<SyncedTensor*>>& buckets,
    const std::vector<LearningParameter>& parameters, const SumOverRanks& others) const {
  std::map<const SyncedTensor*, size_t> bucket_of;
  for (size_t i = 0; i < buckets.size(); ++i) {
    for (const SyncedTensor* gradient : buckets[i]) bucket_of[gradient] = i;
  }
  std::vector<std::vector<LearningParameter>> parts(buckets.size() + 1);
  for (const LearningParameter& one : parameters) {
    const auto found = bucket_of.find(&one.param.blob->diff_tensor());
    parts[found == bucket_of.end() ? buckets.size() : found->second].push_back(one);
  }
  std::vector<std::unique_ptr<ParameterUpdate>> updates;
  for (std::vector<LearningParameter>& part : parts) {
    updates.push_back(
        std::make_unique<ParameterUpdate>(rule_, decide_, net_, step_, std::move(part), others));
  }
  return updates;
}

ops::StepState Updater::ReadState() const {
  ops::StepState state;
  device_->CopyToHost(&state, state_on_device(), sizeof(state));
  return state;
}

void Updater::WriteState(const ops::StepState& state) {
  for (const auto& update : updates_)
    device_->CopyFromHost(update->state().data, &state, sizeof(state));
}

const ops::StepState* Updater::state_on_device() const {
  return updates_.front()->state().as<const ops::StepState>();
}

const double* Updater::loss_scale() const {
  return &state_on_device()->scale;
}

std::vector<float> Updater::ReadCosines() const {
  std::vector<float> cosines(learnable_);
  for (const auto& update : updates_) {
    std::vector<double> state(update->state().count());
    device_->CopyToHost(state.data(), update->state().data, update->state().bytes());
    size_t next = ops::DecideStep::kStateNumbers;
    for (const LearningParameter& one : update->parameters())
      cosines.at(one.index) = static_cast<float>(state[next++]);
  }
  return cosines;
}

void Updater::WriteCosines(const std::vector<float>& cosines) {
  for (const auto& update : updates_) {
    std::vector<double> own;
    for (const LearningParameter& one : update->parameters()) own.push_back(cosines.at(one.index));
    device_->CopyFromHost(update->state().as<double>() + ops::DecideStep::kStateNumbers, own.data(),
                          own.size() * sizeof(double));
  }
}

void Updater::BeginIteration() {
  if (statistics_ != nullptr) statistics_->Save();
}

void Updater::Schedule(const StepScalars& scalars) {
  rule_.FillNumbers(scalars, numbers_);
  if (average_ == nullptr) return;
  if (!average_->has_begun()) average_->Begin(0, ReadState().skipped_steps);
  numbers_[ops::kAverageCount] = average_->NextCount();
}

void Updater::Step(const StepScalars& scalars) {
  Schedule(scalars);
  Prepare();
  Launch(device_->compute_stream());
  Finish();
}

uint64_t Updater::Prepare() {
  device_->MakeCurrent();
  bool has_changed = false;
  for (const auto& update : updates_) has_changed |= update->Bind();
  if (average_ != nullptr) has_changed |= average_->Bind();
  if (has_changed) version_ = NextVersion();
  if (statistics_ != nullptr) statistics_->Bind();
  device_->compute_stream().CopyFromHost(step_.data, numbers_.data(), sizeof(numbers_));
  return version_;
}

void Updater::Launch(Stream& stream) {
  for (const auto& update : updates_) update->Launch(stream);
  if (statistics_ != nullptr) statistics_->RestoreIfSkipped(updates_.front()->decision(), stream);
  LaunchAverage(stream);
}

void Updater::LaunchAverage(Stream& stream) {
  if (average_ == nullptr) return;
  average_->Launch(step_, updates_.front()->state(), updates_.front()->decision(), stream);
}

void Updater::Finish() {
  if (statistics_ != nullptr) statistics_->MarkWritten();
  for (const auto& update : updates_) update->Finish();
}

void Updater::LaunchBucket(size_t bucket) {
  updates_[bucket]->Launch(device_->compute_stream());
}

void Updater::FinishBuckets() {
  updates_.back()->Launch(device_->compute_stream());
  LaunchAverage(device_->compute_stream());
  Finish();
}

}  // namespace caffe
