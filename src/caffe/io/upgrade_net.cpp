#include "caffe/io/upgrade_net.hpp"

#include <glog/logging.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/io/definition_texts.hpp"
#include "caffe/io/fork_options.hpp"
#include "caffe/io/upgrade_inputs.hpp"

namespace caffe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::UnknownField;

// V0 -------------------------------------------------------------------------------------------

// Meaning of a V0 type string: the V1 type and the V1 field with its options, if any.
struct V0Type {
  V1LayerParameter::LayerType type;
  const char* options;
};

const std::map<std::string_view, V0Type>& V0Types() {
  using V1 = V1LayerParameter;
  static const auto* const types = new std::map<std::string_view, V0Type>{
      {"accuracy", {V1::ACCURACY, "accuracy_param"}},
      {"bnll", {V1::BNLL, nullptr}},
      {"concat", {V1::CONCAT, "concat_param"}},
      {"conv", {V1::CONVOLUTION, "convolution_param"}},
      {"data", {V1::DATA, "data_param"}},
      {"dropout", {V1::DROPOUT, "dropout_param"}},
      {"euclidean_loss", {V1::EUCLIDEAN_LOSS, nullptr}},
      {"flatten", {V1::FLATTEN, nullptr}},
      {"hdf5_data", {V1::HDF5_DATA, "hdf5_data_param"}},
      {"hdf5_output", {V1::HDF5_OUTPUT, "hdf5_output_param"}},
      {"im2col", {V1::IM2COL, "convolution_param"}},
      {"images", {V1::IMAGE_DATA, "image_data_param"}},
      {"infogain_loss", {V1::INFOGAIN_LOSS, "infogain_loss_param"}},
      {"innerproduct", {V1::INNER_PRODUCT, "inner_product_param"}},
      {"lrn", {V1::LRN, "lrn_param"}},
      {"multinomial_logistic_loss", {V1::MULTINOMIAL_LOGISTIC_LOSS, nullptr}},
      {"pool", {V1::POOLING, "pooling_param"}},
      {"relu", {V1::RELU, "relu_param"}},
      {"sigmoid", {V1::SIGMOID, "sigmoid_param"}},
      {"softmax", {V1::SOFTMAX, "softmax_param"}},
      {"softmax_loss", {V1::SOFTMAX_LOSS, nullptr}},
      {"split", {V1::SPLIT, nullptr}},
      {"tanh", {V1::TANH, "tanh_param"}},
      {"window_data", {V1::WINDOW_DATA, "window_data_param"}},
  };
  return *types;
}

// Names that V0 spelt differently. All others are the same in V0 and V1.
std::string V1NameOfV0Field(const std::string& name) {
  static const auto* const renamed = new std::map<std::string, std::string>{
      {"biasterm", "bias_term"},
      {"kernelsize", "kernel_size"},
      {"batchsize", "batch_size"},
      {"meanfile", "mean_file"},
      {"cropsize", "crop_size"},
      {"shuffle_images", "shuffle"},
      {"det_fg_threshold", "fg_threshold"},
      {"det_bg_threshold", "bg_threshold"},
      {"det_fg_fraction", "fg_fraction"},
      {"det_context_pad", "context_pad"},
      {"det_crop_mode", "crop_mode"},
  };
  const auto found = renamed->find(name);
  return found == renamed->end() ? name : found->second;
}

// Copies the singular field `from` of `source` to `to` of `target`. `to` may be repeated (one
// element is added), and may be an enum or integer of another type with the same numbers.
void CopyField(const Message& source, const FieldDescriptor* from, Message* target,
               const FieldDescriptor* to) {
  const auto* in = source.GetReflection();
  const auto* out = target->GetReflection();
  const bool add = to->is_repeated();
  const auto integer = [&]() -> int64_t {
    switch (from->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return in->GetInt32(source, from);
      case FieldDescriptor::CPPTYPE_UINT32:
        return in->GetUInt32(source, from);
      case FieldDescriptor::CPPTYPE_ENUM:
        return in->GetEnumValue(source, from);
      default:
        CAFFE_ASSERT(false, "field ", from->full_name(), " is not an integer");
        return 0;
    }
  };
  switch (to->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      const auto value = static_cast<int32_t>(integer());
      return add ? out->AddInt32(target, to, value) : out->SetInt32(target, to, value);
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      const auto value = static_cast<uint32_t>(integer());
      return add ? out->AddUInt32(target, to, value) : out->SetUInt32(target, to, value);
    }
    case FieldDescriptor::CPPTYPE_ENUM:
      return out->SetEnumValue(target, to, static_cast<int>(integer()));
    case FieldDescriptor::CPPTYPE_BOOL:
      return out->SetBool(target, to, in->GetBool(source, from));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return out->SetFloat(target, to, in->GetFloat(source, from));
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string value = in->GetString(source, from);
      return add ? out->AddString(target, to, value) : out->SetString(target, to, value);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return out->MutableMessage(target, to)->CopyFrom(in->GetMessage(source, from));
    default:
      CAFFE_ASSERT(false, "field ", to->full_name(), " has an unexpected type");
  }
}

bool IsPadding(const V1LayerParameter& layer) {
  return layer.layer().type() == "padding";
}

// V0 had separate layers for zero padding. Moves their pad into the convolution and pooling layers
// that read them.
void FoldPaddingLayers(NetParameter* net) {
  std::map<std::string, const V1LayerParameter*> producers;
  for (V1LayerParameter& layer : *net->mutable_layers()) {
    for (std::string& bottom : *layer.mutable_bottom()) {
      const auto producer = producers.find(bottom);
      if (producer == producers.end() || !IsPadding(*producer->second)) continue;
      const V1LayerParameter& padding = *producer->second;
      const std::string& type = layer.layer().type();
      Require(type == "conv" || type == "pool", "layer '", layer.layer().name(), "' (", type,
              ") reads padding layer '", padding.layer().name(),
              "'; only conv and pool layers can take its padding");
      Require(padding.bottom_size() == 1 && padding.top_size() == 1, "padding layer '",
              padding.layer().name(), "' has ", padding.bottom_size(), " bottoms and ",
              padding.top_size(), " tops; it needs 1 and 1");
      layer.mutable_layer()->set_pad(padding.layer().pad());
      bottom = padding.bottom(0);
    }
    for (const std::string& top : layer.top()) producers[top] = &layer;
  }
  auto* layers = net->mutable_layers();
  layers->erase(std::remove_if(layers->begin(), layers->end(), IsPadding), layers->end());
}

V1LayerParameter UpgradeV0Layer(const std::string& source_name, const V1LayerParameter& old) {
  if (!old.has_layer()) return old;
  const V0LayerParameter& v0 = old.layer();
  const auto found = V0Types().find(v0.type());
  Require(found != V0Types().end(), "layer '", v0.name(), "': '", v0.type(),
          "' is not a type of the oldest (V0) layer format; write it as layer { type: \"...\" }");
  V1LayerParameter layer = old;
  layer.clear_layer();
  layer.set_type(found->second.type);
  if (v0.has_name()) layer.set_name(v0.name());

  Message* options = nullptr;
  if (found->second.options) {
    const auto* field = V1LayerParameter::descriptor()->FindFieldByName(found->second.options);
    CAFFE_ASSERT(field != nullptr, found->second.options);
    options = layer.GetReflection()->MutableMessage(&layer, field);
  }
  const bool is_image_source =
      v0.type() == "data" || v0.type() == "images" || v0.type() == "window_data";
  static const std::set<std::string> kTransforms = {"scale", "mean_file", "crop_size", "mirror"};
  std::vector<const FieldDescriptor*> fields;
  v0.GetReflection()->ListFields(v0, &fields);
  for (const FieldDescriptor* from : fields) {
    const std::string name = V1NameOfV0Field(from->name());
    if (name == "name" || name == "type") continue;
    if (name == "blobs") {
      layer.mutable_blobs()->MergeFrom(v0.blobs());
    } else if (name == "blobs_lr") {
      layer.mutable_blobs_lr()->MergeFrom(v0.blobs_lr());
    } else if (name == "weight_decay") {
      layer.mutable_weight_decay()->MergeFrom(v0.weight_decay());
    } else if (name == "hdf5_output_param") {
      layer.mutable_hdf5_output_param()->CopyFrom(v0.hdf5_output_param());
    } else if (is_image_source && kTransforms.count(name)) {
      Message* transform = layer.mutable_transform_param();
      CopyField(v0, from, transform, transform->GetDescriptor()->FindFieldByName(name));
    } else if (const auto* to =
                   options ? options->GetDescriptor()->FindFieldByName(name) : nullptr) {
      CopyField(v0, from, options, to);
    } else {
      LOG(WARNING) << source_name << ": layer '" << v0.name() << "' (" << v0.type()
                   << ") has no use for '" << from->name() << "'; it is dropped";
    }
  }
  return layer;
}

// Data parameters --------------------------------------------------------------------------------

constexpr const char* kMovedFields[] = {"scale", "mean_file", "crop_size", "mirror"};

// Moves scale, mean_file, crop_size and mirror of `data` into `transform`, overwriting existing
// values; returns true if any was set.
bool MoveTransformFields(Message* data, TransformationParameter* transform) {
  bool moved = false;
  for (const char* name : kMovedFields) {
    const FieldDescriptor* from = data->GetDescriptor()->FindFieldByName(name);
    if (!data->GetReflection()->HasField(*data, from)) continue;
    CopyField(*data, from, transform, transform->GetDescriptor()->FindFieldByName(name));
    data->GetReflection()->ClearField(data, from);
    moved = true;
  }
  return moved;
}

bool UpgradeDataParameters(V1LayerParameter* layer) {
  TransformationParameter transform = layer->transform_param();
  bool moved = false;
  if (layer->has_data_param()) {
    moved |= MoveTransformFields(layer->mutable_data_param(), &transform);
  }
  if (layer->has_image_data_param()) {
    moved |= MoveTransformFields(layer->mutable_image_data_param(), &transform);
  }
  if (layer->has_window_data_param()) {
    moved |= MoveTransformFields(layer->mutable_window_data_param(), &transform);
  }
  if (moved) *layer->mutable_transform_param() = transform;
  return moved;
}

// In a `layer` these fields never had an effect, and a net that was trained without them must not
// get one now.
void WarnOfUnusedFields(const std::string& source_name, const LayerParameter& layer) {
  for (const char* options : {"data_param", "image_data_param", "window_data_param"}) {
    const FieldDescriptor* field = layer.GetDescriptor()->FindFieldByName(options);
    if (!layer.GetReflection()->HasField(layer, field)) continue;
    const Message& data = layer.GetReflection()->GetMessage(layer, field);
    for (const char* name : kMovedFields) {
      const FieldDescriptor* unused = data.GetDescriptor()->FindFieldByName(name);
      if (!data.GetReflection()->HasField(data, unused)) continue;
      LOG(WARNING) << source_name << ": layer '" << layer.name() << "': " << options << " { "
                   << name << " } has no effect; say it in transform_param";
    }
  }
}

// V1 -------------------------------------------------------------------------------------------

// EUCLIDEAN_LOSS -> EuclideanLoss, with a table for irregular spellings.
std::string TypeNameOfV1(V1LayerParameter::LayerType type) {
  if (type == V1LayerParameter::NONE) return "";
  if (type == V1LayerParameter::SOFTMAX_LOSS) return "SoftmaxWithLoss";
  static const std::map<std::string, std::string> kIrregular = {
      {"ABSVAL", "AbsVal"}, {"ARGMAX", "ArgMax"}, {"BNLL", "BNLL"}, {"HDF5", "HDF5"},
      {"LRN", "LRN"},       {"MVN", "MVN"},       {"RELU", "ReLU"}, {"TANH", "TanH"},
  };
  std::string name;
  std::string_view rest = V1LayerParameter::LayerType_Name(type);
  while (!rest.empty()) {
    std::string word(rest.substr(0, rest.find('_')));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (const auto irregular = kIrregular.find(word); irregular != kIrregular.end()) {
      name += irregular->second;
      continue;
    }
    for (size_t i = 1; i < word.size(); ++i) {
      if (word[i] >= 'A' && word[i] <= 'Z') word[i] = static_cast<char>(word[i] - 'A' + 'a');
    }
    name += word;
  }
  return name;
}

ParamSpec* ParamAt(LayerParameter* layer, int index) {
  while (layer->param_size() <= index) layer->add_param();
  return layer->mutable_param(index);
}

LayerParameter UpgradeV1Layer(const V1LayerParameter& old) {
  // These changed their meaning or type; all others kept name and type.
  static const std::set<std::string> kConverted = {"layer",    "type",         "param",
                                                   "blobs_lr", "weight_decay", "blob_share_mode"};
  LayerParameter layer;
  if (old.has_type()) layer.set_type(TypeNameOfV1(old.type()));
  for (int i = 0; i < old.param_size(); ++i) ParamAt(&layer, i)->set_name(old.param(i));
  for (int i = 0; i < old.blob_share_mode_size(); ++i) {
    ParamAt(&layer, i)->set_share_mode(
        static_cast<ParamSpec::DimCheckMode>(static_cast<int>(old.blob_share_mode(i))));
  }
  for (int i = 0; i < old.blobs_lr_size(); ++i) ParamAt(&layer, i)->set_lr_mult(old.blobs_lr(i));
  for (int i = 0; i < old.weight_decay_size(); ++i) {
    ParamAt(&layer, i)->set_decay_mult(old.weight_decay(i));
  }

  const auto* in = old.GetReflection();
  const auto* out = layer.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  in->ListFields(old, &fields);
  for (const FieldDescriptor* from : fields) {
    if (kConverted.count(from->name())) continue;
    const FieldDescriptor* to = LayerParameter::descriptor()->FindFieldByName(from->name());
    CAFFE_ASSERT(to != nullptr && to->cpp_type() == from->cpp_type(), from->full_name());
    if (!from->is_repeated()) {
      CopyField(old, from, &layer, to);
      continue;
    }
    for (int i = 0; i < in->FieldSize(old, from); ++i) {
      if (from->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        out->AddMessage(&layer, to)->CopyFrom(in->GetRepeatedMessage(old, from, i));
      } else if (from->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        out->AddString(&layer, to, in->GetRepeatedString(old, from, i));
      } else {
        out->AddFloat(&layer, to, in->GetRepeatedFloat(old, from, i));
      }
    }
  }
  return layer;
}

// Mean, variance and factor are not learned; early definitions had to say so in the net file.
bool UpgradeBatchNorm(LayerParameter* layer) {
  constexpr int kStatistics = 3;
  if (layer->type() != "BatchNorm" || layer->param_size() != kStatistics) return false;
  bool changed = false;
  for (ParamSpec& param : *layer->mutable_param()) {
    changed |= param.lr_mult() != 0 || param.decay_mult() != 0;
    param.set_lr_mult(0);
    param.set_decay_mult(0);
  }
  return changed;
}

// Old files of NVCaffe contain scale, bias, mean, variance and a meaningless number; new ones
// contain mean, variance, 1, scale and bias. All of these appear with four axes.
bool UpgradeBatchNormBlobs(LayerParameter* layer) {
  constexpr int kBlobs = 5, kFactor = 2;
  if (layer->type() != "BatchNorm") return false;
  bool changed = false;
  for (BlobProto& blob : *layer->mutable_blobs()) {
    const Shape shape = ShapeOf(blob);
    if (shape.num_axes() == 1) continue;
    blob.clear_num(), blob.clear_channels(), blob.clear_height(), blob.clear_width();
    blob.mutable_shape()->clear_dim();
    blob.mutable_shape()->add_dim(shape.count());
    changed = true;
  }
  const auto count = [&](int i) { return ShapeOf(layer->blobs(i)).count(); };
  // With one channel the order is ambiguous, and assumed to be the new one.
  if (layer->blobs_size() != kBlobs || count(kBlobs - 1) != 1 || count(kFactor) == 1)
    return changed;
  auto* blobs = layer->mutable_blobs();
  std::rotate(blobs->pointer_begin(), blobs->pointer_begin() + kFactor, blobs->pointer_end());
  const float one = 1;
  WriteBlobFloats(Shape{1}, {&one, 1}, blobs->Mutable(kFactor));
  return true;
}

bool UpgradeNetSteps(const std::string& source_name, NetParameter* net) {
  CheckTexts(*net);
  Require(net->layers_size() == 0 || net->layer_size() == 0, "has ", net->layers_size(),
          " old 'layers' and ", net->layer_size(), " 'layer'; write all of them as 'layer'");
  bool changed = false;
  const auto report = [&](bool done, const char* what) {
    if (done) LOG(INFO) << "Upgraded " << source_name << ": " << what;
    changed |= done;
  };

  const bool has_v0 = std::any_of(net->layers().begin(), net->layers().end(),
                                  [](const V1LayerParameter& layer) { return layer.has_layer(); });
  if (has_v0) {
    FoldPaddingLayers(net);
    for (V1LayerParameter& layer : *net->mutable_layers()) {
      layer = UpgradeV0Layer(source_name, layer);
    }
  }
  report(has_v0, "V0 layers to V1");

  bool moved = false;
  for (V1LayerParameter& layer : *net->mutable_layers()) moved |= UpgradeDataParameters(&layer);
  for (const LayerParameter& layer : net->layer()) WarnOfUnusedFields(source_name, layer);
  report(moved, "scale, mean_file, crop_size and mirror of data parameters to transform_param");

  const bool has_v1 = net->layers_size() > 0;
  for (const V1LayerParameter& layer : net->layers()) *net->add_layer() = UpgradeV1Layer(layer);
  net->clear_layers();
  report(has_v1, "V1 'layers' to 'layer'");

  bool has_holes = false;
  for (LayerParameter& layer : *net->mutable_layer()) has_holes |= UpgradeHoles(&layer);
  report(has_holes, "hole, hole_h and hole_w to dilation");

  report(UpgradeInputs(source_name, net), "input fields to an Input layer");

  bool has_statistics = false;
  for (LayerParameter& layer : *net->mutable_layer()) has_statistics |= UpgradeBatchNorm(&layer);
  report(has_statistics, "lr_mult and decay_mult of BatchNorm statistics to 0");
  bool has_old_blobs = false;
  for (LayerParameter& layer : *net->mutable_layer())
    has_old_blobs |= UpgradeBatchNormBlobs(&layer);
  report(has_old_blobs, "order and axes of BatchNorm's blobs");
  return changed;
}

// Parses `payload` as the message field `name` of `layer`, if possible.
bool AdoptField(const std::string& payload, const char* name, LayerParameter* layer) {
  const FieldDescriptor* field = LayerParameter::descriptor()->FindFieldByName(name);
  CAFFE_ASSERT(field != nullptr, name);
  Message* message = layer->GetReflection()->MutableMessage(layer, field);
  if (message->ParsePartialFromString(payload) && message->IsInitialized()) return true;
  layer->GetReflection()->ClearField(layer, field);
  return false;
}

}  // namespace

bool UpgradeNet(const std::string& source_name, NetParameter* net) {
  return WithContext(source_name, [&] { return UpgradeNetSteps(source_name, net); });
}

void AdoptBvlcFields(const std::string& source_name, NetParameter* net) {
  static const std::map<int, const char*> kNames = {{145, "parameter_param"},
                                                    {146, "recurrent_param"},
                                                    {147, "swish_param"},
                                                    {148, "clip_param"}};
  for (LayerParameter& layer : *net->mutable_layer()) {
    auto* unknown = layer.GetReflection()->MutableUnknownFields(&layer);
    std::vector<std::pair<int, std::string>> payloads;
    for (int i = 0; i < unknown->field_count(); ++i) {
      const UnknownField& field = unknown->field(i);
      if (kNames.count(field.number()) && field.type() == UnknownField::TYPE_LENGTH_DELIMITED) {
        payloads.emplace_back(field.number(), field.length_delimited());
      }
    }
    for (const auto& [number, payload] : payloads) {
      unknown->DeleteByNumber(number);
      if (!AdoptField(payload, kNames.at(number), &layer)) {
        LOG(WARNING) << source_name << ": layer '" << layer.name() << "': field " << number
                     << " is not a " << kNames.at(number) << "; it is dropped";
      }
    }
  }
}

}  // namespace caffe
