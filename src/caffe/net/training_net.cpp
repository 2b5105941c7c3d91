#include "caffe/net/training_net.hpp"

#include "caffe/net/first_non_finite.hpp"
#include "caffe/net/net_impl.hpp"
#include "caffe/net/weights.hpp"

namespace caffe {

RankExchange* TrainingNet::exchange() const {
  return net_.impl_->source.exchange.get();
}

std::vector<SplitParam> TrainingNet::SplitParams() const {
  std::vector<SplitParam> params;
  const LayerBlobs& blobs = net_.impl_->memory.params.by_layer();
  for (size_t i = 0; i < blobs.size(); ++i) {
    if (!graph().calls[i].is_split) continue;
    for (const std::shared_ptr<Blob>& blob : blobs[i]) params.push_back({blob, blob->shape(0)});
  }
  return params;
}

float TrainingNet::Forward(uint64_t pass) {
  set_next_pass(pass);
  float loss = 0;
  net_.Forward(&loss);
  return loss;
}

void TrainingNet::Backward(const TrainingPass& pass) {
  Net::Impl& impl = *net_.impl_;
  const ThreadClaim::Scope scope = impl.Claim();
  impl.ShowLossScale(pass.loss_scale);
  impl.Run(Direction::kBackward, 0, impl.last_layer(), pass);
}

float TrainingNet::ForwardBackward(const TrainingPass& pass) {
  Net::Impl& impl = *net_.impl_;
  const ThreadClaim::Scope scope = impl.Claim();
  impl.ShowLossScale(pass.loss_scale);
  impl.RunForwardBackward(pass);
  // Last, because it waits for the device.
  return impl.Loss(0, impl.last_layer());
}

void TrainingNet::Launch(const TrainingPass& pass) {
  Net::Impl& impl = *net_.impl_;
  const ThreadClaim::Scope scope = impl.Claim();
  impl.ShowLossScale(pass.loss_scale);
  impl.RunForwardBackward(pass);
  impl.losses.Send(impl.plan.graph(), impl.plan.bindings());
}

void TrainingNet::set_next_pass(uint64_t pass) {
  net_.impl_->next_pass = pass;
}

std::string TrainingNet::DescribeFirstNonFinite(const std::string& why_parameter,
                                                const TrainingPass* backward) const {
  Net::Impl& impl = *net_.impl_;
  const ThreadClaim::Scope scope = impl.Claim();
  Executor::RunOptions run = impl.OptionsOf(backward != nullptr ? *backward : TrainingPass{});
  if (backward != nullptr) run.direction.reset();
  return caffe::DescribeFirstNonFinite(impl.source, impl.memory.params, impl.plan, std::move(run),
                                       why_parameter);
}

std::string TrainingNet::DescribeNonFiniteParameter(
    const std::function<bool(const Net::LearnableParam&)>& is_asked,
    const std::string& why_parameter) const {
  Net::Impl& impl = *net_.impl_;
  const ThreadClaim::Scope scope = impl.Claim();
  return caffe::DescribeNonFiniteParameter(impl.memory.params, *impl.source.device, is_asked,
                                           why_parameter);
}

void TrainingNet::ResumeFrom(uint64_t seed,
                             const std::map<std::string, uint64_t>& delivered_records) {
  Net::Impl& impl = *net_.impl_;
  const ThreadClaim::Scope scope = impl.Claim();
  impl.seed = seed;
  impl.source.options.delivered_records = delivered_records;
  impl.plan.Drop();
  impl.PrepareLayers();
  impl.plan.Compile(seed, impl.claim);
}

void TrainingNet::WriteTrained(const Net& net, bool write_diff, Hdf5Writer* writer) {
  const NetParams& params = net.impl_->memory.params;
  WriteTrainedHdf5(net.impl_->layer_names, params.by_layer(), params.Owned(), write_diff, writer);
}

std::map<std::string, uint64_t> TrainingNet::delivered_records() const {
  std::map<std::string, uint64_t> records;
  for (const std::shared_ptr<Layer>& layer : net_.layers()) {
    if (layer->records_delivered() > 0) records[layer->name()] = layer->records_delivered();
  }
  return records;
}

Executor& TrainingNet::executor() const {
  return net_.impl_->plan.executor();
}

SyncedTensor* TrainingNet::tensor(const Value& value) const {
  return executor().bindings()[value.id];
}

const std::shared_ptr<Device>& TrainingNet::device() const {
  return net_.impl_->source.device;
}

std::vector<Plan> TrainingNet::TradeOffs() const {
  return CompileTradeOffs(net_.impl_->source, {});
}

}  // namespace caffe
