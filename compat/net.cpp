#include "caffe/compat/caffe/net.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "caffe/compat/caffe/layers/builtin_layer.hpp"
#include "caffe/compat/caffe/layers/memory_data_layer.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/net_files.hpp"
#include "compat/layer_bridge.hpp"
#include "compat/net_access.hpp"
#include "compat/net_blob.hpp"

namespace caffe::bvlc {
namespace {

template <typename Dtype>
NetParameter Typed(NetParameter param) {
  if constexpr (kDTypeOf<Dtype> == DType::kDouble) MakeDouble(&param);
  return param;
}

template <typename Dtype>
std::unique_ptr<NetAccess> Compile(const NetParameter& param, const string& file) {
  NetOptions options = OptionsOf<Dtype>();
  options.file = file;
  return std::make_unique<NetAccess>(std::make_shared<::caffe::Net>(Typed<Dtype>(param), options));
}

NetParameter ReadFile(const string& file, Phase phase, int level, const vector<string>* stages) {
  NetParameter param = ReadNetText(file);
  SetNetState(phase, level, stages == nullptr ? vector<string>() : *stages, &param);
  return param;
}

// Reads the inputs whose memory belongs to the caller.
template <typename Dtype>
void ReadBorrowed(const NetAccess& access) {
  for (const std::shared_ptr<NetBlob>& input : access.inputs) {
    const auto* memory = static_cast<const Dtype*>(input->borrowed());
    ::caffe::Blob& blob = *input->blob;
    if (memory != nullptr)
      std::copy_n(memory, blob.count(), blob.template mutable_cpu_data<Dtype>());
  }
}

template <typename Dtype>
double MeanMagnitude(const Blob<Dtype>& blob, bool is_diff) {
  const double sum = is_diff ? blob.asum_diff() : blob.asum_data();
  return blob.count() == 0 ? 0 : sum / blob.count();
}

}  // namespace

void MakeDouble(NetParameter* param) {
  for (LayerParameter& layer : *param->mutable_layer()) {
    if (!LayerRegistry<double>::IsForeign(layer.type())) continue;
    if (!layer.has_forward_type()) layer.set_forward_type(DOUBLE);
    if (!layer.has_backward_type()) layer.set_backward_type(DOUBLE);
  }
}

template <typename Dtype>
Net<Dtype>::Net(const NetParameter& param) : Net(Compile<Dtype>(param, "")) {}

template <typename Dtype>
Net<Dtype>::Net(const string& param_file, Phase phase, const int level,
                const vector<string>* stages)
    : Net(Compile<Dtype>(ReadFile(param_file, phase, level, stages), param_file)) {}

template <typename Dtype>
Net<Dtype>::Net(std::unique_ptr<NetAccess> access) : access_(std::move(access)) {
  ShowBlobs();
  ShowLayers();
  ShowParams();
}

template <typename Dtype>
Net<Dtype>::~Net() = default;

template <typename Dtype>
void Net<Dtype>::ShowBlobs() {
  const ::caffe::Net& net = *access_->net;
  for (size_t i = 0; i < net.blobs().size(); ++i) {
    const auto& inputs = net.input_names();
    const bool is_input =
        std::find(inputs.begin(), inputs.end(), net.blob_names()[i]) != inputs.end();
    const auto shown = std::make_shared<NetBlob>(net.blobs()[i], is_input);
    if (is_input) access_->inputs.push_back(shown);
    blobs_.push_back(std::make_shared<Blob<Dtype>>(shown));
  }
  for (const string& name : net.blob_names())
    blob_loss_weights_.push_back(static_cast<Dtype>(net.loss_weight(name)));
  const auto find = [&](const vector<string>& names, vector<int>* indices,
                        vector<Blob<Dtype>*>* blobs) {
    for (const string& name : names) {
      const auto& all = net.blob_names();
      indices->push_back(static_cast<int>(std::find(all.begin(), all.end(), name) - all.begin()));
      blobs->push_back(blobs_[indices->back()].get());
    }
  };
  find(net.input_names(), &input_blob_indices_, &input_blobs_);
  find(net.output_names(), &output_blob_indices_, &output_blobs_);
}

template <typename Dtype>
void Net<Dtype>::ShowLayers() {
  const ::caffe::Net& net = *access_->net;
  const auto blobs_of = [&](const vector<int>& ids) {
    vector<Blob<Dtype>*> blobs;
    for (const int id : ids) blobs.push_back(blobs_[id].get());
    return blobs;
  };
  for (int i = 0; i < static_cast<int>(net.layers().size()); ++i) {
    bottom_vecs_.push_back(blobs_of(net.bottom_ids(i)));
    top_vecs_.push_back(blobs_of(net.top_ids(i)));
    layer_need_backward_.push_back(net.layer_need_backward(i));
    bottom_need_backward_.push_back(net.graph().calls[i].bottom_needs_gradient);
    const std::shared_ptr<::caffe::Layer>& layer = net.layers()[i];
    if (const auto* bridge = dynamic_cast<const LayerBridge<Dtype>*>(layer.get())) {
      bridge->ShowParams(net.layer_params(i));
      layers_.push_back(bridge->object());
    } else if (layer->type() == "MemoryData") {
      layers_.push_back(std::make_shared<MemoryDataLayer<Dtype>>(layer->param(), access_.get(), i));
    } else {
      layers_.push_back(std::make_shared<BuiltinLayer<Dtype>>(layer->param(), access_.get(), i));
    }
  }
}

template <typename Dtype>
void Net<Dtype>::ShowParams() {
  const ::caffe::Net& net = *access_->net;
  vector<const Value*> values;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerParameter& param = net.layers()[i]->param();
    const vector<shared_ptr<Blob<Dtype>>>& blobs = layers_[i]->blobs();
    for (int k = 0; k < static_cast<int>(blobs.size()); ++k) {
      const Value* const value = net.graph().calls[i].param_values.at(k);
      const auto owner = std::find(values.begin(), values.end(), value->owner) - values.begin();
      const int index = static_cast<int>(params_.size());
      const ParamSpec spec = k < param.param_size() ? param.param(k) : ParamSpec();
      params_.push_back(blobs[k]);
      values.push_back(value);
      param_display_names_.push_back(spec.name().empty() ? std::to_string(k) : spec.name());
      if (!spec.name().empty()) param_names_index_.emplace(spec.name(), index);
      const bool is_owner = value->owner == nullptr;
      param_owners_.push_back(is_owner ? -1 : static_cast<int>(owner));
      if (!is_owner) continue;
      learnable_params_.push_back(blobs[k].get());
      params_lr_.push_back(spec.has_lr_mult() ? spec.lr_mult() : 1.0f);
      has_params_lr_.push_back(spec.has_lr_mult());
      params_weight_decay_.push_back(spec.has_decay_mult() ? spec.decay_mult() : 1.0f);
      has_params_decay_.push_back(spec.has_decay_mult());
    }
  }
}

// Callbacks may be added between two passes.
template <typename Dtype>
void Net<Dtype>::ListenOnce() {
  if (listens_ || (!debug_info_ && before_forward_.empty() && after_forward_.empty() &&
                   before_backward_.empty() && after_backward_.empty())) {
    return;
  }
  listens_ = true;
  const auto call = [](const vector<Callback*>& callbacks, int layer) {
    for (Callback* callback : callbacks) callback->run(layer);
  };
  const auto log = [this](const char* direction, int layer, const vector<Blob<Dtype>*>& blobs,
                          const vector<int>& ids, bool is_diff) {
    if (!debug_info_) return;
    for (size_t i = 0; i < blobs.size(); ++i) {
      LOG(INFO) << "    [" << direction << "] Layer " << layer_names()[layer]
                << (is_diff ? ", bottom blob " : ", top blob ") << blob_names()[ids[i]]
                << (is_diff ? " diff: " : " data: ") << MeanMagnitude(*blobs[i], is_diff);
    }
  };
  ::caffe::Net& net = *access_->net;
  net.AddBeforeForward([this, call](int layer) { call(before_forward_, layer); });
  net.AddAfterForward([this, call, log](int layer) {
    log("Forward", layer, top_vecs_[layer], top_ids(layer), /*is_diff=*/false);
    call(after_forward_, layer);
  });
  net.AddBeforeBackward([this, call](int layer) { call(before_backward_, layer); });
  net.AddAfterBackward([this, call, log](int layer) {
    if (layer_need_backward_[layer])
      log("Backward", layer, bottom_vecs_[layer], bottom_ids(layer), /*is_diff=*/true);
    call(after_backward_, layer);
  });
}

template <typename Dtype>
const vector<Blob<Dtype>*>& Net<Dtype>::Forward(Dtype* loss) {
  ListenOnce();
  ReadBorrowed<Dtype>(*access_);
  float sum = 0;
  access_->net->Forward(&sum);
  if (loss != nullptr) *loss = sum;
  return output_blobs_;
}

template <typename Dtype>
const vector<Blob<Dtype>*>& Net<Dtype>::Forward(const vector<Blob<Dtype>*>& bottom, Dtype* loss) {
  Require(bottom.size() == input_blobs_.size(), "Forward: ", bottom.size(),
          " blobs are given, the net has ", input_blobs_.size(), " inputs");
  for (size_t i = 0; i < bottom.size(); ++i)
    input_blobs_[i]->CopyFrom(*bottom[i], /*copy_diff=*/false, /*reshape=*/true);
  return Forward(loss);
}

template <typename Dtype>
Dtype Net<Dtype>::ForwardFromTo(int start, int end) {
  ListenOnce();
  ReadBorrowed<Dtype>(*access_);
  return access_->net->ForwardFromTo(start, end);
}
template <typename Dtype>
Dtype Net<Dtype>::ForwardFrom(int start) {
  return ForwardFromTo(start, last_layer());
}
template <typename Dtype>
Dtype Net<Dtype>::ForwardTo(int end) {
  return ForwardFromTo(0, end);
}

template <typename Dtype>
void Net<Dtype>::Backward() {
  ListenOnce();
  access_->net->Backward();
}
template <typename Dtype>
void Net<Dtype>::BackwardFromTo(int start, int end) {
  ListenOnce();
  access_->net->BackwardFromTo(start, end);
}
template <typename Dtype>
void Net<Dtype>::BackwardFrom(int start) {
  BackwardFromTo(start, 0);
}
template <typename Dtype>
void Net<Dtype>::BackwardTo(int end) {
  BackwardFromTo(last_layer(), end);
}

template <typename Dtype>
Dtype Net<Dtype>::ForwardBackward() {
  ListenOnce();
  ReadBorrowed<Dtype>(*access_);
  return access_->net->ForwardBackward();
}

template <typename Dtype>
void Net<Dtype>::ClearParamDiffs() {
  access_->net->ClearParamDiffs();
}
template <typename Dtype>
void Net<Dtype>::Reshape() {
  access_->net->Reshape();
}
template <typename Dtype>
void Net<Dtype>::Update() {
  for (Blob<Dtype>* param : learnable_params_) param->Update();
}

template <typename Dtype>
void Net<Dtype>::ShareTrainedLayersWith(const Net* other) {
  access_->net->ShareTrainedLayersWith(*other->access_->net);
}
template <typename Dtype>
void Net<Dtype>::CopyTrainedLayersFrom(const NetParameter& param) {
  access_->net->CopyTrainedLayersFrom(param);
}
template <typename Dtype>
void Net<Dtype>::CopyTrainedLayersFrom(const string& trained_filename) {
  access_->net->CopyTrainedLayersFrom(trained_filename);
}
template <typename Dtype>
void Net<Dtype>::CopyTrainedLayersFromBinaryProto(const string& trained_filename) {
  access_->net->CopyTrainedLayersFrom(ReadNetBinary(trained_filename));
}
template <typename Dtype>
void Net<Dtype>::CopyTrainedLayersFromHDF5(const string& trained_filename) {
  access_->net->CopyTrainedLayersFromHDF5(trained_filename);
}
template <typename Dtype>
void Net<Dtype>::ToProto(NetParameter* param, bool write_diff) const {
  access_->net->ToProto(param, write_diff);
}
template <typename Dtype>
void Net<Dtype>::ToHDF5(const string& filename, bool write_diff) const {
  access_->net->ToHDF5(filename, write_diff);
}

template <typename Dtype>
const string& Net<Dtype>::name() const {
  return access_->net->name();
}
template <typename Dtype>
const vector<string>& Net<Dtype>::layer_names() const {
  return access_->net->layer_names();
}
template <typename Dtype>
const vector<string>& Net<Dtype>::blob_names() const {
  return access_->net->blob_names();
}
template <typename Dtype>
Phase Net<Dtype>::phase() const {
  return access_->net->phase();
}
template <typename Dtype>
const vector<int>& Net<Dtype>::top_ids(int i) const {
  return access_->net->top_ids(i);
}
template <typename Dtype>
const vector<int>& Net<Dtype>::bottom_ids(int i) const {
  return access_->net->bottom_ids(i);
}

template <typename Dtype>
bool Net<Dtype>::has_blob(const string& blob_name) const {
  return access_->net->has_blob(blob_name);
}
template <typename Dtype>
Shared<Blob<Dtype>> Net<Dtype>::blob_by_name(const string& blob_name) const {
  const vector<string>& names = blob_names();
  const auto found = std::find(names.begin(), names.end(), blob_name);
  if (found != names.end()) return blobs_[found - names.begin()];
  LOG(WARNING) << "Unknown blob name " << blob_name;
  return {};
}
template <typename Dtype>
bool Net<Dtype>::has_layer(const string& layer_name) const {
  return access_->net->has_layer(layer_name);
}
template <typename Dtype>
Shared<Layer<Dtype>> Net<Dtype>::layer_by_name(const string& layer_name) const {
  const vector<string>& names = layer_names();
  const auto found = std::find(names.begin(), names.end(), layer_name);
  if (found != names.end()) return layers_[found - names.begin()];
  LOG(WARNING) << "Unknown layer name " << layer_name;
  return {};
}

template <typename Dtype>
void Net<Dtype>::FilterNet(const NetParameter& param, NetParameter* param_filtered) {
  *param_filtered = ::caffe::Net::FilterNet(param);
}
template <typename Dtype>
bool Net<Dtype>::StateMeetsRule(const NetState& state, const NetStateRule& rule, const string&) {
  return ::caffe::Net::StateMeetsRule(state, rule);
}

template class Net<float>;
template class Net<double>;

}  // namespace caffe::bvlc
