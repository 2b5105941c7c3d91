#include "caffe/net.hpp"

#include <algorithm>
#include <utility>

#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/layer_position.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net/compiled_program.hpp"
#include "caffe/net/first_non_finite.hpp"
#include "caffe/net/net_impl.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/net/weights.hpp"
#include "caffe/version.hpp"

namespace caffe {
namespace {

NetParameter ReadForState(const std::string& file, Phase phase, int level,
                          const std::vector<std::string>& stages, bool lenient) {
  const LenientReading reading(lenient);
  NetParameter param = ReadNetText(file);
  SetNetState(phase, level, stages, &param);
  return param;
}

NetOptions OfFile(NetOptions options, const std::string& file) {
  options.file = file;
  return options;
}

}  // namespace

Net::Net(const NetParameter& param, const NetOptions& options)
    : impl_(WithLayerPosition(options.file, param.state().phase(),
                              [&] { return std::make_unique<Impl>(param, options); })) {}

Net::Net(const std::string& file, Phase phase, int level, const std::vector<std::string>& stages,
         const NetOptions& options)
    : impl_(WithLayerPosition(file, phase, [&] {
        return std::make_unique<Impl>(ReadForState(file, phase, level, stages, options.lenient),
                                      OfFile(options, file));
      })) {}

Net::~Net() = default;

const std::vector<Blob*>& Net::Forward(float* loss) {
  const ThreadClaim::Scope scope = impl_->Claim();
  impl_->ReshapeIfInputsWere();
  const int last = impl_->last_layer();
  impl_->Run(Direction::kForward, 0, last, impl_->NextPass());
  if (loss != nullptr) *loss = impl_->Loss(0, last);
  return impl_->memory.blobs.outputs();
}

float Net::ForwardFromTo(int start, int end) {
  const ThreadClaim::Scope scope = impl_->Claim();
  impl_->CheckLayers("forward", start, end);
  impl_->plan.CheckIsThere();
  Require(start == 0 || !impl_->memory.blobs.InputsWereReshaped(impl_->plan.graph()),
          "an input was reshaped, so that no blob before layer ", start, " ('",
          impl_->layer_names[start],
          "') has a value: run forward from layer 0, or call Reshape() and set them");
  impl_->ReshapeIfInputsWere();
  impl_->Run(Direction::kForward, start, end, impl_->NextPass());
  return impl_->Loss(start, end);
}

void Net::Backward() {
  const ThreadClaim::Scope scope = impl_->Claim();
  impl_->Run(Direction::kBackward, 0, impl_->last_layer(), impl_->NextPass());
}

void Net::BackwardFromTo(int start, int end) {
  const ThreadClaim::Scope scope = impl_->Claim();
  impl_->CheckLayers("backward", end, start);
  impl_->Run(Direction::kBackward, end, start, impl_->NextPass());
}

float Net::ForwardBackward() {
  const ThreadClaim::Scope scope = impl_->Claim();
  impl_->RunForwardBackward(impl_->NextPass());
  // Last, because it waits for the device.
  return impl_->Loss(0, impl_->last_layer());
}

void Net::LaunchForwardBackward() {
  TrainingNet(*this).Launch(impl_->NextPass());
}

float Net::AwaitLoss() {
  return impl_->losses.Await();
}

void Net::Reshape() {
  const ThreadClaim::Scope scope = impl_->Claim();
  impl_->Reshape();
  impl_->RestorePlannedShapes();
}

void Net::AddBeforeForward(LayerCallback callback) {
  impl_->AddCallback(&impl_->before_forward, std::move(callback));
}
void Net::AddAfterForward(LayerCallback callback) {
  impl_->AddCallback(&impl_->after_forward, std::move(callback));
}
void Net::AddBeforeBackward(LayerCallback callback) {
  impl_->AddCallback(&impl_->before_backward, std::move(callback));
}
void Net::AddAfterBackward(LayerCallback callback) {
  impl_->AddCallback(&impl_->after_backward, std::move(callback));
}

void Net::ClearParamDiffs() {
  const ThreadClaim::Scope scope = impl_->Claim();
  for (const LearnableParam& learnable : impl_->memory.params.learnable())
    learnable.blob->diff_tensor().Zero();
}

const NetParameter& Net::definition() const {
  return impl_->source.param;
}
const std::string& Net::name() const {
  return impl_->source.param.name();
}
Phase Net::phase() const {
  return impl_->source.param.state().phase();
}
uint64_t Net::seed() const {
  return impl_->seed;
}
const std::vector<std::string>& Net::layer_names() const {
  return impl_->layer_names;
}
const std::vector<std::shared_ptr<Layer>>& Net::layers() const {
  return impl_->source.layers;
}
const std::vector<std::string>& Net::blob_names() const {
  return impl_->memory.blobs.names();
}
const std::vector<std::shared_ptr<Blob>>& Net::blobs() const {
  return impl_->memory.blobs.all();
}
const std::vector<int>& Net::bottom_ids(int layer) const {
  return impl_->memory.blobs.bottom_ids().at(layer);
}
const std::vector<int>& Net::top_ids(int layer) const {
  return impl_->memory.blobs.top_ids().at(layer);
}
bool Net::has_blob(const std::string& name) const {
  return impl_->memory.blobs.has(name);
}

std::shared_ptr<Blob> Net::blob_by_name(const std::string& name) const {
  if (!has_blob(name)) throw InvalidArgument(NoSuchName("blob", name, blob_names()));
  return blobs()[impl_->memory.blobs.index(name)];
}

bool Net::has_layer(const std::string& name) const {
  const std::vector<std::string>& names = layer_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::shared_ptr<Layer> Net::layer_by_name(const std::string& name) const {
  return layers()[impl_->IndexOfLayer(name)];
}

const std::vector<std::shared_ptr<Blob>>& Net::layer_params(int layer) const {
  return impl_->memory.params.by_layer().at(layer);
}

const std::vector<std::shared_ptr<Blob>>& Net::layer_params(const std::string& layer) const {
  return layer_params(impl_->IndexOfLayer(layer));
}

const std::vector<Net::LearnableParam>& Net::learnable_params() const {
  return impl_->memory.params.learnable();
}
const std::vector<std::string>& Net::input_names() const {
  return impl_->memory.blobs.input_names();
}
const std::vector<std::string>& Net::output_names() const {
  return impl_->memory.blobs.output_names();
}
const std::vector<Blob*>& Net::input_blobs() const {
  return impl_->memory.blobs.inputs();
}
const std::vector<Blob*>& Net::output_blobs() const {
  return impl_->memory.blobs.outputs();
}

float Net::loss_weight(const std::string& blob) const {
  const auto& weights = impl_->memory.blobs.loss_weights();
  const auto found = weights.find(blob);
  return found == weights.end() ? 0 : found->second;
}

bool Net::layer_need_backward(int layer) const {
  return graph().calls.at(layer).needs_backward;
}

const Graph& Net::graph() const {
  return impl_->plan.graph();
}

bool Net::is_allocated() const {
  return impl_->source.options.allocate;
}

int64_t Net::persistent_bytes() const {
  return NetMemory::PersistentBytes(graph());
}

int64_t Net::weight_bytes() const {
  const ThreadClaim::Scope scope = impl_->Claim();
  return impl_->memory.WeightBytes();
}

std::string Net::DescribeFirstNonFinite() {
  const ThreadClaim::Scope scope = impl_->Claim();
  return caffe::DescribeFirstNonFinite(impl_->source, impl_->memory.params, impl_->plan,
                                       impl_->OptionsOf({}), /*why_parameter=*/"");
}

std::vector<Net::WeightTransfer> Net::CopyTrainedLayersFrom(const NetParameter& trained) {
  const ThreadClaim::Scope scope = impl_->Claim();
  return CopyTrainedLayers(trained, impl_->layer_names, impl_->memory.params.by_layer(),
                           "the given ones");
}

std::vector<Net::WeightTransfer> Net::CopyTrainedLayersFrom(const std::string& file) {
  const ThreadClaim::Scope scope = impl_->Claim();
  return CopyTrainedFile(file, impl_->layer_names, impl_->memory.params.by_layer(),
                         impl_->memory.params.Owned(), impl_->source.loading());
}

std::vector<Net::WeightTransfer> Net::CopyTrainedLayersFromHDF5(const std::string& file) {
  const ThreadClaim::Scope scope = impl_->Claim();
  return CopyTrainedHdf5(file, impl_->layer_names, impl_->memory.params.by_layer(),
                         impl_->memory.params.Owned());
}

void Net::ShareTrainedLayersWith(const Net& other) {
  const ThreadClaim::Scope scope = impl_->Claim();
  for (size_t i = 0; i < impl_->source.layers.size(); ++i) {
    if (!other.has_layer(impl_->layer_names[i])) continue;
    const auto& theirs = other.layer_params(impl_->layer_names[i]);
    const auto& mine = impl_->memory.params.by_layer()[i];
    Require(theirs.size() == mine.size(), "layer '", impl_->layer_names[i], "' has ", mine.size(),
            " parameter blob(s) here and ", theirs.size(), " in the net to share with");
    for (size_t k = 0; k < mine.size(); ++k) {
      WithContext("layer '" + impl_->layer_names[i] + "'", [&] { mine[k]->ShareData(*theirs[k]); });
    }
  }
}

std::unique_ptr<Net> Net::Share() {
  Require(phase() == TEST, "net '", name(), "' has phase TRAIN; nets for inference can be shared");
  Require(is_allocated(), "net '", name(), "' is only planned; nets that run can be shared");
  const std::set<const Value*> written = WrittenParams(graph());
  Require(written.empty(), "net '", name(), "': a forward pass writes '",
          written.empty() ? "" : (*written.begin())->name,
          "', so two threads would; in testing, layers should take their statistics as they are "
          "(use_global_stats)");
  std::unique_ptr<Net> net = impl_->WithSameWeights(*this, impl_->source.options);
  const ThreadClaim::Scope scope = impl_->Claim();
  net->impl_->plan.executor().ShareCopies(impl_->plan.executor());
  return net;
}

std::unique_ptr<Net> Net::Impl::WithSameWeights(const Net& self, const NetOptions& options) const {
  auto net = std::make_unique<Net>(source.param, options);
  const Device &mine = *source.device, &theirs = *net->impl_->source.device;
  Require(theirs.kind() == mine.kind() && theirs.identity() == mine.identity(), "net '",
          self.name(), "' runs on ", mine.description(), ", but the mode that is set names ",
          theirs.description(), "; set the one that it was made in");
  for (size_t i = 0; i < self.input_blobs().size(); ++i)
    net->input_blobs()[i]->Reshape(self.input_blobs()[i]->shape());
  net->Reshape();
  net->ShareTrainedLayersWith(self);
  return net;
}

void Net::ToProto(NetParameter* param, bool write_diff) const {
  param->Clear();
  param->set_name(impl_->source.param.name());
  if (impl_->source.param.has_model_info())
    *param->mutable_model_info() = impl_->source.param.model_info();
  for (size_t i = 0; i < impl_->source.layers.size(); ++i) {
    LayerParameter* layer = param->add_layer();
    *layer = impl_->source.layers[i]->param();
    WriteLayerBlobs(impl_->memory.params.by_layer()[i], write_diff, layer);
  }
}

void Net::Save(const std::string& file, bool write_diff) const {
  NetParameter trained;
  ToProto(&trained, write_diff);
  WriteBinaryProto(file, trained);
}

void Net::SaveProgram(const std::string& file) {
  Require(phase() == TEST, "net '", name(), "' has phase TRAIN; nets for inference are compiled");
  Require(is_allocated(), "net '", name(), "' is only planned; nets that run are compiled");
  Require(impl_->source.device->kind() == DeviceKind::kCpu, "net '", name(), "' runs on ",
          impl_->source.device->description(), "; programs are compiled for processors");
  NetOptions options = impl_->source.options;
  if (options.keep_all || options.with_backward || !options.for_any_processor) {
    options.keep_all = options.with_backward = false;
    options.for_any_processor = true;
    return impl_->WithSameWeights(*this, options)->SaveProgram(file);
  }
  Reshape();
  const ThreadClaim::Scope scope = impl_->Claim();
  impl_->plan.executor().PrepareCopies();
  runtime::ProgramFile program =
      MakeProgram(graph(), impl_->plan.bindings(), input_names(), output_names());
  program.net = name();
  program.made_by = StrCat("Cortado ", CAFFE_VERSION);
  const std::string bytes = runtime::WriteProgram(program);
  runtime::ReadProgram(bytes);  // checks the file as the runtime does
  WriteFileAtomically(file, bytes);
}

void Net::ToHDF5(const std::string& file, bool write_diff) const {
  Hdf5Writer writer(file);
  TrainingNet::WriteTrained(*this, write_diff, &writer);
  writer.Commit();
}

}  // namespace caffe
