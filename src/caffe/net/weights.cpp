#include "caffe/net/weights.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <utility>

#include "caffe/core/counted.hpp"
#include "caffe/core/philox.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/filler.hpp"
#include "caffe/graph/layer_place.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/io/stored_numbers.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

// Shapes agree if they are equal after dropping the leading 1s of old files, which always had 4
// axes.
bool FitsLegacy(const Shape& stored, const Shape& wanted) {
  if (stored == wanted) return true;
  if (stored.num_axes() != 4 || wanted.num_axes() > 4) return false;
  const int extra = 4 - wanted.num_axes();
  for (int axis = 0; axis < 4; ++axis) {
    const int64_t expected = axis < extra ? 1 : wanted[axis - extra];
    if (stored[axis] != expected) return false;
  }
  return true;
}

void CheckFits(const Shape& stored, const Shape& wanted) {
  Require(FitsLegacy(stored, wanted), "the file has shape ", stored, ", the net ", wanted,
          "; give the weights of this net, or rename the layer to train it from scratch");
}

using ParamBlobs = std::vector<std::shared_ptr<Blob>>;
using ReadOne = std::function<void(const BlobProto&, Blob*)>;

void CopyLayer(const LayerParameter& source, const ParamBlobs& blobs, const ReadOne& read) {
  Require(source.blobs_size() == static_cast<int>(blobs.size()), "the file has ",
          source.blobs_size(), " parameter blob(s), the net ", blobs.size(), "; the layers differ");
  for (int i = 0; i < source.blobs_size(); ++i) {
    WithContext(StrCat("parameter ", i), [&] { read(source.blobs(i), blobs[i].get()); });
  }
}

void SetOrigin(std::shared_ptr<const Origin> origin, Loading loading, Blob* blob) {
  blob->data_tensor().SetOrigin(std::move(origin));
  if (loading == Loading::kNow) blob->data_tensor().data();
}

// The initial values of a parameter.
class FillerOrigin final : public Origin {
 public:
  FillerOrigin(const FillerParameter& filler, const Shape& shape, uint64_t seed,
               const std::string& name)
      : filler_(filler), shape_(shape), random_(seed, StreamOf(name)) {}

  bool reads_parts() const override { return FillsParts(filler_); }
  void Read(int64_t first, int64_t count, DType dtype, void* to) const override {
    if (dtype == DType::kFloat && count < shape_.count())
      return FillPart(filler_, shape_, random_, first, {static_cast<float*>(to), Size(count)});
    if (dtype == DType::kFloat)
      return Fill(filler_, shape_, random_, 0, {static_cast<float*>(to), Size(count)});
    std::vector<float> values(Size(shape_.count()));
    Fill(filler_, shape_, random_, 0, values);
    VisitFloat(dtype, [&]<typename T>(TypeTag<T>) {
      std::transform(values.begin() + first, values.begin() + first + count, static_cast<T*>(to),
                     [](float x) { return T(x); });
    });
  }

 private:
  static size_t Size(int64_t count) { return static_cast<size_t>(count); }

  const FillerParameter filler_;
  const Shape shape_;
  const RandomStream random_;
};

// A layer in an HDF5 file, and the indexes of its parameters in the file.
struct Hdf5Layer {
  std::string name;
  std::vector<std::string> params;
};

// A name with slashes is a path of groups, so the group of layer 'a' may contain that of 'a/b'. In
// a damaged file, groups may contain each other.
std::vector<Hdf5Layer> LayersIn(const Hdf5Reader& reader, const std::string& file,
                                const std::string& root) {
  constexpr int kMostDeep = 100;
  constexpr uint64_t kBytesOfGroup = 32;  // lower bound
  uint64_t left = std::filesystem::file_size(file) / kBytesOfGroup;
  std::vector<Hdf5Layer> layers;
  const auto visit = [&](const auto& self, const std::string& name, int deep) -> void {
    if (deep > kMostDeep || left-- == 0) {
      throw IoError(StrCat(file, ": damaged: the groups in '", root, "' are ",
                           deep > kMostDeep ? StrCat("more than ", kMostDeep, " deep")
                                            : "more than the file has room for",
                           "; copy or create it again"));
    }
    bool holds_groups = false;
    Hdf5Layer layer{name, {}};
    for (const std::string& link : reader.LinksOf(root + "/" + name)) {
      const std::string child = name.empty() ? link : name + "/" + link;
      if (reader.IsGroup(root + "/" + child)) {
        holds_groups = true;
        self(self, child, deep + 1);
      } else {
        layer.params.push_back(link);
      }
    }
    if (!name.empty() && (!holds_groups || !layer.params.empty())) layers.push_back(layer);
  };
  visit(visit, "", 0);
  return layers;
}

// Looks up parameters by index, because a file omits parameters that belong to another layer.
void CopyHdf5Layer(const Hdf5Reader& reader, const Hdf5Layer& source,
                   const std::set<const Blob*>& owned, const ParamBlobs& blobs) {
  for (const std::string& number : source.params) {
    const bool is_wanted = std::any_of(blobs.begin(), blobs.end(), [&, i = 0](const auto&) mutable {
      return number == std::to_string(i++);
    });
    Require(is_wanted, "the file has parameter ", number, ", the net ", blobs.size(),
            " parameter blob(s); the layers differ");
  }
  for (size_t i = 0; i < blobs.size(); ++i) {
    const std::string dataset = "data/" + source.name + "/" + std::to_string(i);
    if (!reader.Contains(dataset)) {
      Require(owned.count(blobs[i].get()) == 0, "the file lacks parameter ", i, " of ",
              blobs.size(), ", which the net shares with no earlier layer; the layers differ");
      continue;
    }
    WithContext(StrCat("parameter ", i), [&] {
      BlobProto proto;
      WriteBlobDoubles(reader.ShapeOf(dataset), reader.ReadDoubles(dataset), &proto);
      ReadBlob(proto, blobs[i].get());
    });
  }
}

// Copies layer by layer and records the outcomes.
class Transfer {
 public:
  Transfer(const std::vector<std::string>& names, const LayerBlobs& blobs)
      : names_(names), blobs_(blobs), is_copied_(names.size()) {}

  bool Ignores(const std::string& name, int source_blobs) {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return false;
    LOG(INFO) << "Ignoring source layer " << name;
    if (source_blobs > 0) {
      report_.push_back({name, Net::WeightTransfer::kIgnored, source_blobs, 0});
    }
    return true;
  }

  // copy(blobs) fills the layer's blobs.
  template <typename CopyBlobs>
  void Copy(const std::string& name, const CopyBlobs& copy) {
    const size_t index = std::find(names_.begin(), names_.end(), name) - names_.begin();
    WithContext("layer '" + name + "'", [&] { copy(blobs_[index]); });
    is_copied_[index] = true;
    Add(index, Net::WeightTransfer::kCopied);
  }

  // `source`: name of the source for the error message. Throws InvalidArgument if no layer fits,
  // because the source then belongs to another net.
  std::vector<Net::WeightTransfer> Report(const char* source) {
    for (size_t i = 0; i < names_.size(); ++i) {
      if (!is_copied_[i]) Add(i, Net::WeightTransfer::kKept);
    }
    CheckSomeAreCopied(source);
    return std::move(report_);
  }

 private:
  void Add(size_t index, Net::WeightTransfer::Outcome outcome) {
    if (blobs_[index].empty()) return;
    int64_t values = 0;
    for (const std::shared_ptr<Blob>& blob : blobs_[index]) values += blob->count();
    report_.push_back({names_[index], outcome, static_cast<int>(blobs_[index].size()), values});
  }

  void CheckSomeAreCopied(const char* source) const {
    std::array<int, 3> layers{};  // by outcome
    std::array<std::string, 3> first;
    for (const Net::WeightTransfer& one : report_) {
      if (layers[one.outcome]++ == 0) first[one.outcome] = one.layer;
    }
    const int kept = layers[Net::WeightTransfer::kKept];
    const int ignored = layers[Net::WeightTransfer::kIgnored];
    if (layers[Net::WeightTransfer::kCopied] > 0 || kept == 0) return;
    LogTransfers(report_);
    Require(false, "none of the net's ", kept, " layers with parameters ('",
            first[Net::WeightTransfer::kKept], "', ...) takes its weights from ", source,
            ", which has ", ignored, " others",
            ignored > 0 ? " ('" + first[Net::WeightTransfer::kIgnored] + "', ...)" : "",
            "; layers are matched by name: give the weights of this net, or rename its layers");
  }

  const std::vector<std::string>& names_;
  const LayerBlobs& blobs_;
  std::vector<bool> is_copied_;
  std::vector<Net::WeightTransfer> report_;
};

// `name` as in Transfer::Report().
std::vector<Net::WeightTransfer> CopyLayers(const NetParameter& trained,
                                            const std::vector<std::string>& layer_names,
                                            const LayerBlobs& blobs, const char* name,
                                            const ReadOne& read) {
  Transfer transfer(layer_names, blobs);
  for (const LayerParameter& source : trained.layer()) {
    if (transfer.Ignores(source.name(), source.blobs_size())) continue;
    transfer.Copy(source.name(), [&](const ParamBlobs& own) { CopyLayer(source, own, read); });
  }
  return transfer.Report(name);
}

}  // namespace

void LogTransfers(const std::vector<Net::WeightTransfer>& transfers) {
  size_t width = 0;
  for (const Net::WeightTransfer& one : transfers) width = std::max(width, one.layer.size());
  for (const Net::WeightTransfer& one : transfers) {
    const std::string name = one.layer + std::string(width - one.layer.size(), ' ');
    switch (one.outcome) {
      case Net::WeightTransfer::kCopied:
        LOG(INFO) << "  " << name << "  copied   " << Counted(one.blobs, "blob") << ", "
                  << Counted(one.values, "value");
        break;
      case Net::WeightTransfer::kKept:
        LOG(INFO) << "  " << name << "  kept     the file has no layer of this name";
        break;
      case Net::WeightTransfer::kIgnored:
        LOG(INFO) << "  " << name << "  ignored  the net has no layer of this name";
        break;
    }
  }
}

void ReadBlob(const BlobProto& proto, Blob* blob, bool diff) {
  CheckFits(ShapeOf(proto), blob->shape());
  const std::vector<double> values = ReadBlobDoubles(proto, diff);
  VisitFloat(blob->data_tensor().desc().dtype, [&]<typename T>(TypeTag<T>) {
    T* elements = diff ? blob->mutable_cpu_diff<T>() : blob->mutable_cpu_data<T>();
    std::transform(values.begin(), values.end(), elements, [](double x) { return T(x); });
  });
}

namespace {

// Calls write(elements). Those that are only in a file of weights are read from there and not kept.
template <typename T, typename Write>
void WithElements(const Blob& blob, const Write& write) {
  const auto count = static_cast<size_t>(blob.count());
  const auto origin = blob.data_tensor().AbsentFrom();
  if (origin == nullptr) return write(std::span<const T>(blob.cpu_data<T>(), count));
  std::vector<T> elements(count);
  origin->Read(0, blob.count(), kDTypeOf<T>, elements.data());
  write(std::span<const T>(elements));
}

}  // namespace

void WriteBlob(const Blob& blob, bool write_diff, BlobProto* proto) {
  const size_t count = static_cast<size_t>(blob.count());
  if (blob.data_tensor().desc().dtype == DType::kDouble) {
    WithElements<double>(blob, [&](auto data) { WriteBlobDoubles(blob.shape(), data, proto); });
    if (write_diff) WriteBlobDoubles(blob.shape(), {blob.cpu_diff<double>(), count}, proto, true);
    return;
  }
  WithElements<float>(blob, [&](auto data) { WriteBlobFloats(blob.shape(), data, proto); });
  if (write_diff) WriteBlobFloats(blob.shape(), {blob.cpu_diff<float>(), count}, proto, true);
}

void InitializeParam(const Layer& layer, int index, const ParamDeclaration& declaration,
                     uint64_t seed, Loading loading, Blob* blob) {
  if (index < layer.param().blobs_size()) {
    WithContext(StrCat(PlaceOf(layer.param()), ": blobs ", index),
                [&] { ReadBlob(layer.param().blobs(index), blob); });
    return;
  }
  const std::string name = StrCat(layer.name(), ".", index);
  if (declaration.values.empty()) {
    CheckParamFiller(layer, index, declaration);
    return SetOrigin(
        std::make_shared<FillerOrigin>(declaration.filler, declaration.shape, seed, name), loading,
        blob);
  }
  const std::vector<float>& values = declaration.values;
  CAFFE_ASSERT(static_cast<int64_t>(values.size()) == blob->count(), name);
  VisitFloat(blob->data_tensor().desc().dtype, [&]<typename T>(TypeTag<T>) {
    std::transform(values.begin(), values.end(), blob->mutable_cpu_data<T>(),
                   [](float x) { return T(x); });
  });
}

void CheckParamFiller(const Layer& layer, int index, const ParamDeclaration& declaration) {
  if (index < layer.param().blobs_size() || !declaration.values.empty()) return;
  WithContext(StrCat(PlaceOf(layer.param()), ": parameter ", index),
              [&] { CheckFiller(declaration.filler, declaration.shape); });
}

SharedSpecs MergeSharedSpecs(const NetParameter& param) {
  SharedSpecs merged;
  for (const LayerParameter& layer : param.layer()) {
    for (const ParamSpec& spec : layer.param()) {
      if (spec.name().empty()) continue;
      ParamSpec& first = merged.emplace(spec.name(), spec).first->second;
      Require(!spec.has_lr_mult() || !first.has_lr_mult() || spec.lr_mult() == first.lr_mult(),
              "layer '", layer.name(), "': shared parameter '", spec.name(), "' has lr_mult ",
              spec.lr_mult(), " here and ", first.lr_mult(), " elsewhere; make them equal");
      Require(!spec.has_decay_mult() || !first.has_decay_mult() ||
                  spec.decay_mult() == first.decay_mult(),
              "layer '", layer.name(), "': shared parameter '", spec.name(), "' has decay_mult ",
              spec.decay_mult(), " here and ", first.decay_mult(), " elsewhere; make them equal");
      if (!first.has_lr_mult() && spec.has_lr_mult()) first.set_lr_mult(spec.lr_mult());
      if (!first.has_decay_mult() && spec.has_decay_mult()) first.set_decay_mult(spec.decay_mult());
    }
  }
  return merged;
}

Net::LearnableParam DescribeParam(const LayerParameter& layer, int index,
                                  const ParamDeclaration& declaration, const SharedSpecs& shared,
                                  std::shared_ptr<Blob> blob) {
  Net::LearnableParam param;
  param.blob = std::move(blob);
  param.name = StrCat(layer.name(), ".", index);
  if (index < layer.param_size()) {
    const auto found = shared.find(layer.param(index).name());
    const ParamSpec& spec = found == shared.end() ? layer.param(index) : found->second;
    param.lr_mult = spec.lr_mult();
    param.decay_mult = spec.decay_mult();
  }
  if (!declaration.is_learnable) param.lr_mult = param.decay_mult = 0;
  return param;
}

std::vector<Net::WeightTransfer> CopyTrainedLayers(const NetParameter& trained,
                                                   const std::vector<std::string>& layer_names,
                                                   const LayerBlobs& blobs, const char* name) {
  return CopyLayers(trained, layer_names, blobs, name,
                    [](const BlobProto& proto, Blob* blob) { ReadBlob(proto, blob); });
}

std::vector<Net::WeightTransfer> CopyTrainedFile(const std::string& file,
                                                 const std::vector<std::string>& layer_names,
                                                 const LayerBlobs& blobs,
                                                 const std::set<const Blob*>& owned,
                                                 Loading loading) {
  if (file.ends_with(".h5")) return CopyTrainedHdf5(file, layer_names, blobs, owned);
  const WeightsInFile trained = ReadWeights(file);
  const auto read = [&](const BlobProto& proto, Blob* blob) {
    CheckFits(ShapeOf(proto), blob->shape());
    if (std::shared_ptr<const Origin> origin = trained.OriginOf(proto))
      return SetOrigin(std::move(origin), loading, blob);
    ReadBlob(proto, blob);
  };
  return WithContext(
      file, [&] { return CopyLayers(trained.net, layer_names, blobs, "this file", read); });
}

std::vector<Net::WeightTransfer> CopyTrainedHdf5(const std::string& file,
                                                 const std::vector<std::string>& layer_names,
                                                 const LayerBlobs& blobs,
                                                 const std::set<const Blob*>& owned) {
  const Hdf5Reader reader(file);
  if (!reader.Contains("data")) {
    throw IoError(StrCat(
        file, ": holds no weights: it has no group 'data'",
        reader.Contains("history")
            ? "; it is a solver's state: give it as a snapshot, or give the weights next to it"
            : ""));
  }
  Transfer transfer(layer_names, blobs);
  for (const Hdf5Layer& source : LayersIn(reader, file, "data")) {
    if (transfer.Ignores(source.name, static_cast<int>(source.params.size()))) continue;
    WithContext(file, [&] {
      transfer.Copy(source.name,
                    [&](const ParamBlobs& own) { CopyHdf5Layer(reader, source, owned, own); });
    });
  }
  return WithContext(file, [&] { return transfer.Report("this file"); });
}

void WriteLayerBlobs(const std::vector<std::shared_ptr<Blob>>& blobs, bool write_diff,
                     LayerParameter* layer) {
  layer->clear_blobs();
  for (const std::shared_ptr<Blob>& blob : blobs) WriteBlob(*blob, write_diff, layer->add_blobs());
}

void WriteTrainedHdf5(const std::vector<std::string>& layer_names, const LayerBlobs& blobs,
                      const std::set<const Blob*>& owned, bool write_diff, Hdf5Writer* writer) {
  for (size_t i = 0; i < layer_names.size(); ++i) {
    writer->CreateGroup("data/" + layer_names[i]);
    for (size_t k = 0; k < blobs[i].size(); ++k) {
      const Blob& blob = *blobs[i][k];
      if (owned.count(&blob) == 0) continue;
      const std::string name = layer_names[i] + "/" + std::to_string(k);
      const size_t count = static_cast<size_t>(blob.count());
      if (blob.data_tensor().desc().dtype == DType::kDouble) {
        WithElements<double>(
            blob, [&](auto data) { writer->WriteDoubles("data/" + name, blob.shape(), data); });
        if (write_diff)
          writer->WriteDoubles("diff/" + name, blob.shape(), {blob.cpu_diff<double>(), count});
        continue;
      }
      WithElements<float>(
          blob, [&](auto data) { writer->WriteFloats("data/" + name, blob.shape(), data); });
      if (write_diff)
        writer->WriteFloats("diff/" + name, blob.shape(), {blob.cpu_diff<float>(), count});
    }
  }
}

}  // namespace caffe
