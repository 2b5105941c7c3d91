#include "caffe/net/blob_versions.hpp"

#include <algorithm>
#include <map>

#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

void CopyElements(SyncedTensor& from, SyncedTensor& to) {
  if (&from == &to || from.desc().count() != to.desc().count()) return;
  const auto copy = [&]<typename T>(TypeTag<T>) {
    std::copy_n(from.host<T>(), from.desc().count(), to.mutable_host<T>());
  };
  if (to.desc().dtype == DType::kDouble) {
    copy(TypeTag<double>());
  } else {
    copy(TypeTag<float>());
  }
}

}  // namespace

const BlobVersions::Version* BlobVersions::RewrittenBlob::After(int layer) const {
  const Version* latest = nullptr;
  for (const Version& version : versions) {
    if (version.writer <= layer) latest = &version;
  }
  return latest;
}

BlobVersions::BlobVersions(const Graph& graph, const NetBlobs& blobs, const Bindings& bindings) {
  std::map<const Value*, std::set<int>> readers;
  std::map<std::string, std::vector<Version>> versions;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    for (const Value* bottom : graph.calls[i].bottoms) readers[bottom].insert(static_cast<int>(i));
  }
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    for (const Value* top : graph.calls[i].tops) {
      const auto gradient = graph.gradients.find(top);
      const bool has_gradient = gradient != graph.gradients.end() && gradient->second != nullptr;
      versions[top->name].push_back({static_cast<int>(i), readers[top], bindings[top->id],
                                     has_gradient ? bindings[gradient->second->id] : nullptr});
    }
  }
  for (auto& [name, of_blob] : versions) {
    if (of_blob.size() > 1) rewritten_.push_back({&blobs.at(name), std::move(of_blob)});
  }
}

void BlobVersions::TakeFromBlobs(Direction direction, int first, int last) const {
  for (const RewrittenBlob& blob : rewritten_) {
    if (direction == Direction::kForward) {
      const Version* version = blob.After(first - 1);
      if (version == nullptr) continue;
      const auto reader = version->readers.lower_bound(first);
      if (reader == version->readers.end() || *reader > last) continue;
      CopyElements(blob.blob->data_tensor(), *version->data);
    } else {
      const Version* version = blob.After(last);
      if (version == nullptr || version->writer < first || version->gradient == nullptr) continue;
      CopyElements(blob.blob->diff_tensor(), *version->gradient);
    }
  }
}

void BlobVersions::ShowInBlobs(Direction direction, int first, int last) const {
  for (const RewrittenBlob& blob : rewritten_) {
    if (direction == Direction::kForward) {
      const Version* version = blob.After(last);
      if (version == nullptr || version->writer < first) continue;
      CopyElements(*version->data, blob.blob->data_tensor());
    } else {
      const Version* version = blob.After(first - 1);
      if (version == nullptr || version->gradient == nullptr || version->readers.empty()) continue;
      // A gradient is complete after the first reader.
      const int reader = *version->readers.begin();
      if (reader < first || reader > last) continue;
      CopyElements(*version->gradient, blob.blob->diff_tensor());
    }
  }
}

}  // namespace caffe
