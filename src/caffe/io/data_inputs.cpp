#include "caffe/io/data_inputs.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <sstream>

#include "caffe/core/split.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

int64_t DimOf(const std::string& text, const std::string& entry) {
  int64_t dim = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, dim);
  Require(error == std::errc() && rest == end && dim > 0, "'", entry, "': '", text,
          "' is not a positive dimension; write BLOB=N,C,H,W");
  return dim;
}

std::string Text(const std::vector<int64_t>& dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return text;
}

void ReplaceByInput(const BlobDims& dims, LayerParameter* layer) {
  LayerParameter input;
  input.set_name(layer->name());
  input.set_type("Input");
  input.mutable_top()->CopyFrom(layer->top());
  input.mutable_include()->CopyFrom(layer->include());
  input.mutable_exclude()->CopyFrom(layer->exclude());
  for (const std::string& top : layer->top()) {
    const auto found = dims.find(top);
    Require(found != dims.end(), "layer '", layer->name(), "' writes '", top,
            "' too; give its dimensions as well (", top, "=...)");
    BlobShape* shape = input.mutable_input_param()->add_shape();
    for (const int64_t dim : found->second) shape->add_dim(dim);
  }
  *layer = input;
}

// Returns the options of a layer that reads files: the message with a batch size and a source. Null
// if the layer reads none.
const Message* FileOptions(const LayerParameter& layer) {
  std::vector<const FieldDescriptor*> fields;
  layer.GetReflection()->ListFields(layer, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_repeated()) continue;
    const google::protobuf::Descriptor* type = field->message_type();
    if (type->FindFieldByName("batch_size") != nullptr &&
        type->FindFieldByName("source") != nullptr)
      return &layer.GetReflection()->GetMessage(layer, field);
  }
  return nullptr;
}

// Returns 0 if there is no such field.
int64_t NumberIn(const Message& message, const char* name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  if (field == nullptr) return 0;
  return field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32
             ? message.GetReflection()->GetUInt32(message, field)
         : field->cpp_type() == FieldDescriptor::CPPTYPE_INT32
             ? message.GetReflection()->GetInt32(message, field)
             : 0;
}

std::string Source(const Message& options) {
  return options.GetReflection()->GetString(options,
                                            options.GetDescriptor()->FindFieldByName("source"));
}

struct Size {
  int64_t height = 0, width = 0;
};

Size SizeOfImages(const LayerParameter& layer, const Message& options) {
  const TransformationParameter& transform = layer.transform_param();
  const int64_t crop = std::max<int64_t>(transform.crop_size(), NumberIn(options, "crop_size"));
  if (crop > 0) return {crop, crop};
  if (transform.crop_h() > 0 && transform.crop_w() > 0)
    return {transform.crop_h(), transform.crop_w()};
  if (transform.resize_param().height() > 0 && transform.resize_param().width() > 0)
    return {transform.resize_param().height(), transform.resize_param().width()};
  return {NumberIn(options, "new_height"), NumberIn(options, "new_width")};
}

}  // namespace

BlobDims ParseBlobDims(const std::string& text) {
  BlobDims dims;
  std::istringstream entries(text);
  for (std::string entry; entries >> entry;) {
    const size_t equals = entry.find('=');
    Require(equals != std::string::npos && equals > 0, "'", entry,
            "' names no blob; write BLOB=N,C,H,W");
    std::vector<int64_t>& numbers = dims[entry.substr(0, equals)];
    for (const std::string& number : SplitByComma(entry.substr(equals + 1)))
      numbers.push_back(DimOf(number, entry));
    Require(!numbers.empty(), "'", entry, "' has no dimensions; write BLOB=N,C,H,W");
  }
  return dims;
}

void ReplaceByInputs(const BlobDims& dims, NetParameter* net) {
  std::set<std::string> written, replaced;
  for (LayerParameter& layer : *net->mutable_layer()) {
    if (layer.bottom_size() > 0) continue;
    const auto has_dims = [&](const std::string& top) { return dims.contains(top); };
    written.insert(layer.top().begin(), layer.top().end());
    if (std::none_of(layer.top().begin(), layer.top().end(), has_dims)) continue;
    replaced.insert(layer.top().begin(), layer.top().end());
    ReplaceByInput(dims, &layer);
  }
  for (const auto& [blob, numbers] : dims) {
    std::string names;
    for (const std::string& name : written) names += (names.empty() ? "" : ", ") + name;
    Require(replaced.contains(blob), "no data layer of net '", net->name(), "' writes '", blob,
            "'; written: ", names.empty() ? "none" : names);
  }
}

BlobDims DimsByOptions(const LayerParameter& layer) {
  const Message* options = FileOptions(layer);
  if (options == nullptr || layer.top_size() == 0 || layer.top_size() > 2) return {};
  const int64_t batch = NumberIn(*options, "batch_size");
  if (layer.has_tokens_param()) {
    const int64_t length = layer.tokens_param().length();
    BlobDims dims;
    for (const std::string& top : layer.top()) dims[top] = {batch, length};
    return batch > 0 && length > 0 ? dims : BlobDims();
  }
  const Size size = SizeOfImages(layer, *options);
  if (batch <= 0 || size.height <= 0 || size.width <= 0) return {};
  const int64_t channels = layer.transform_param().force_gray() ? 1 : 3;
  BlobDims dims = {{layer.top(0), {batch, channels, size.height, size.width}}};
  // Assumes one box per image, or one number.
  if (layer.top_size() == 2) {
    dims[layer.top(1)] = layer.has_annotated_data_param() ? std::vector<int64_t>{1, 1, batch, 8}
                                                          : std::vector<int64_t>{batch};
  }
  return dims;
}

std::string SourceOf(const LayerParameter& layer) {
  const Message* const options = FileOptions(layer);
  return options == nullptr ? "" : Source(*options);
}

std::vector<std::string> ReplaceMissingData(NetParameter* net) {
  std::vector<std::string> assumed;
  for (LayerParameter& layer : *net->mutable_layer()) {
    const Message* options = FileOptions(layer);
    if (layer.bottom_size() > 0 || options == nullptr) continue;
    const std::string source = Source(*options);
    std::error_code ignored;
    if (source.empty() || std::filesystem::exists(source, ignored)) continue;
    const BlobDims dims = DimsByOptions(layer);
    const bool is_text = layer.has_tokens_param();
    const char* const missing =
        is_text ? " is not there (caffe data import-text makes such folders), and batch_size and "
                  "length do not say how many tokens there are;"
        : layer.has_hdf5_data_param()
            ? ", the list of HDF5 files, is not there; write it, or"
            : " is not there, and no crop_size says how large images are;";
    Require(!dims.empty(), "layer '", layer.name(), "': ", source, missing, " give --input ",
            layer.top_size() > 0 ? layer.top(0) : std::string("data"),
            is_text ? "=N,T" : "=N,C,H,W");
    std::string text = StrCat("layer '", layer.name(), "': ", source, " is not there; assumed");
    for (const std::string& top : layer.top()) text += StrCat(" ", top, "=", Text(dims.at(top)));
    assumed.push_back(text + " (--input gives others)");
    ReplaceByInput(dims, &layer);
  }
  return assumed;
}

int64_t ReadAheadBytes(const NetParameter& with_data, const NetParameter& with_inputs) {
  int64_t bytes = 0;
  for (int i = 0; i < with_inputs.layer_size(); ++i) {
    const Message* options = FileOptions(with_data.layer(i));
    if (options == nullptr || with_inputs.layer(i).type() != "Input") continue;
    const bool reads_ahead = options->GetDescriptor()->FindFieldByName("prefetch") != nullptr;
    const int64_t prefetch =
        reads_ahead ? NumberIn(*options, "prefetch") : DataParameter().prefetch();
    // The prefetched batches and the one in use.
    const int64_t batches = std::max<int64_t>(prefetch, 1) + 1;
    for (const BlobShape& shape : with_inputs.layer(i).input_param().shape()) {
      int64_t count = 1;
      for (const int64_t dim : shape.dim()) count *= dim;
      bytes += batches * count * static_cast<int64_t>(sizeof(float));
    }
  }
  return bytes;
}

}  // namespace caffe
