#include "caffe/io/fork_fields.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

namespace caffe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::UnknownField;

// Range of field numbers in our schema for fields that only forks have.
constexpr int kFirstOfForks = 2001, kLastOfForks = 2999;

struct Number {
  Dialect dialect;
  const char* field;
  int number;
};

// Numbers published in the forks' own schemas.
constexpr Number kNumbers[] = {
    {RCNN, "roi_pooling_param", 8266711},
    {RCNN, "smooth_l1_loss_param", 8266712},
    {RCNN, "proposal_param", 8266713},
    {RCNN, "psroi_pooling_param", 149},
    {RCNN, "box_annotator_ohem_param", 150},
    {PSPNET, "bn_param", 137},
    {PSPNET, "interp_param", 143},
    {PSPNET, "roi_pooling_param", 150},
    {FLOWNET, "correlation_param", 150},
    {FLOWNET, "l1_loss_param", 151},
    {FLOWNET, "resample_param", 155},
    {FLOWNET, "downsample_param", 156},
    {FLOWNET, "flow_warp_param", 159},
    {OPENPOSE, "imresize_param", 147},
    {OPENPOSE, "nms_param", 148},
    {YOLO, "upsample_param", 149},
    {YOLO, "yolo_detection_output_param", 601},
    {YOLO, "yolov3_detection_output_param", 602},
    {YOLO, "yolov3_param", 603},
};

// Returns the field with the options of a fork's layer type; null for other types.
const FieldDescriptor* FieldOf(const std::string& type) {
  static const std::map<std::string, const char*> kOtherNames = {
      {"SyncBN", "bn_param"},
      {"Correlation1D", "correlation_param"},
      {"Lstm", "lstm_param"},
      {"SpatialTransformer", "st_param"},
      {"SoftmaxWithFocalLoss", "focal_loss_param"},
      {"WarpCTCLoss", "ctc_loss_param"}};
  const google::protobuf::Descriptor& layer = *LayerParameter::descriptor();
  const auto other = kOtherNames.find(type);
  for (int i = 0; i < layer.field_count(); ++i) {
    const FieldDescriptor* field = layer.field(i);
    if (field->number() < kFirstOfForks || field->number() > kLastOfForks) continue;
    const bool is_own = other != kOtherNames.end()
                            ? field->name() == other->second
                            : field->message_type()->name() == type + "Parameter";
    if (is_own) return field;
  }
  return nullptr;
}

// A field of a layer that may contain its options.
struct Candidate {
  int number;
  std::string payload;
};

bool IsPublished(const Number& one, const FieldDescriptor& field, int number) {
  return one.number == number && field.name() == one.field;
}

// Returns the fields with numbers that our schema does not have, and those with a number of our
// schema that a fork is known to use for these options, because a layer may have several option
// messages.
std::vector<Candidate> CandidatesIn(const LayerParameter& layer, const FieldDescriptor& options) {
  std::vector<Candidate> candidates;
  const google::protobuf::Reflection& reflection = *layer.GetReflection();
  const auto& unknown = reflection.GetUnknownFields(layer);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const UnknownField& field = unknown.field(i);
    if (field.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    candidates.push_back({field.number(), field.length_delimited()});
  }
  std::vector<const FieldDescriptor*> known;
  reflection.ListFields(layer, &known);
  for (const FieldDescriptor* field : known) {
    if (field->message_type() == nullptr || field->is_repeated()) continue;
    const bool is_known =
        std::any_of(std::begin(kNumbers), std::end(kNumbers),
                    [&](const Number& one) { return IsPublished(one, options, field->number()); });
    if (!is_known) continue;
    candidates.push_back(
        {field->number(), reflection.GetMessage(layer, field).SerializePartialAsString()});
  }
  return candidates;
}

// Returns the only candidate, or one with a published number, preferably of the file's dialect.
const Candidate* Choose(const std::vector<Candidate>& candidates, const FieldDescriptor& field,
                        Dialect dialect) {
  if (candidates.size() == 1) return &candidates[0];
  const Candidate* chosen = nullptr;
  for (const Candidate& candidate : candidates) {
    for (const Number& one : kNumbers) {
      if (!IsPublished(one, field, candidate.number)) continue;
      if (one.dialect == dialect) return &candidate;
      if (chosen == nullptr) chosen = &candidate;
    }
  }
  return chosen;
}

void Remove(int number, LayerParameter* layer) {
  const google::protobuf::Reflection& reflection = *layer->GetReflection();
  reflection.MutableUnknownFields(layer)->DeleteByNumber(number);
  const FieldDescriptor* known = LayerParameter::descriptor()->FindFieldByNumber(number);
  if (known != nullptr && known->message_type() != nullptr) reflection.ClearField(layer, known);
}

}  // namespace

void AdoptForkFields(const std::string& source_name, NetParameter* net) {
  std::map<Dialect, int> votes;
  int adopted = 0;
  for (LayerParameter& layer : *net->mutable_layer()) {
    const FieldDescriptor* field = FieldOf(layer.type());
    if (field == nullptr || layer.GetReflection()->HasField(layer, field)) continue;
    const std::vector<Candidate> candidates = CandidatesIn(layer, *field);
    const Candidate* chosen = Choose(candidates, *field, net->dialect());
    if (chosen == nullptr) continue;
    Message* options = layer.GetReflection()->MutableMessage(&layer, field);
    const bool is_read = options->ParsePartialFromString(chosen->payload) &&
                         options->GetReflection()->GetUnknownFields(*options).empty();
    if (!is_read) {
      LOG(WARNING) << source_name << ": layer '" << layer.name() << "': field " << chosen->number
                   << " is not a " << field->name() << "; it is dropped";
      layer.GetReflection()->ClearField(&layer, field);
    }
    for (const Number& one : kNumbers) {
      if (is_read && IsPublished(one, *field, chosen->number)) ++votes[one.dialect];
    }
    adopted += is_read ? 1 : 0;
    Remove(chosen->number, &layer);
  }
  if (adopted == 0) return;
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  LOG(INFO) << source_name << ": options of " << adopted << " layers have the numbers of "
            << (most == votes.end() ? "a fork of Caffe" : "dialect " + Dialect_Name(most->first));
}

}  // namespace caffe
