#include "caffe/compat/caffe/blob.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "caffe/error.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/shape.hpp"
#include "compat/extents.hpp"
#include "compat/memory_source.hpp"
#include "compat/net_blob.hpp"

namespace caffe::bvlc {
namespace {

// Integer blobs are shapes and indices; nets have none.
template <typename Dtype>
constexpr bool kIsNumber = std::is_floating_point_v<Dtype>;

template <typename Dtype>
void RequireNumbers(const char* method) {
  Require(kIsNumber<Dtype>, method, " is for blobs of float or double, this one is of integers");
}

template <typename Dtype>
Dtype SumOfMagnitudes(const Dtype* x, int count) {
  Dtype sum = 0;
  for (int i = 0; i < count; ++i) sum += x[i] < Dtype(0) ? Dtype(0) - x[i] : x[i];
  return sum;
}

template <typename Dtype>
Dtype SumOfSquares(const Dtype* x, int count) {
  Dtype sum = 0;
  for (int i = 0; i < count; ++i) sum += x[i] * x[i];
  return sum;
}

}  // namespace

template <typename Dtype>
Blob<Dtype>::Blob() : count_(0), capacity_(0) {}

template <typename Dtype>
Blob<Dtype>::Blob(const int num, const int channels, const int height, const int width) : Blob() {
  Reshape(num, channels, height, width);
}

template <typename Dtype>
Blob<Dtype>::Blob(const vector<int>& shape) : Blob() {
  Reshape(shape);
}

template <typename Dtype>
Blob<Dtype>::Blob(const std::shared_ptr<NetBlob>& net_blob) : Blob() {
  Show(net_blob);
}

template <typename Dtype>
Blob<Dtype>::~Blob() = default;

template <typename Dtype>
void Blob<Dtype>::Show(const std::shared_ptr<NetBlob>& net_blob) {
  net_blob_ = net_blob;
  if (net_blob == nullptr) {
    Allocate();
    return;
  }
  if constexpr (kIsNumber<Dtype>) {
    data_ = std::make_shared<SyncedMemory>(TensorOf<Dtype>(net_blob, /*is_diff=*/false));
    diff_ = std::make_shared<SyncedMemory>(TensorOf<Dtype>(net_blob, /*is_diff=*/true));
  }
  Refresh();
}

template <typename Dtype>
void Blob<Dtype>::Refresh() const {
  if (net_blob_ == nullptr) return;
  const std::vector<int64_t>& extents = net_blob_->blob->shape().dims();
  if (std::equal(extents.begin(), extents.end(), shape_.begin(), shape_.end())) return;
  shape_.assign(extents.begin(), extents.end());
}

template <typename Dtype>
void Blob<Dtype>::Allocate() {
  capacity_ = count_;
  data_ = std::make_shared<SyncedMemory>(capacity_ * sizeof(Dtype));
  diff_ = std::make_shared<SyncedMemory>(capacity_ * sizeof(Dtype));
}

template <typename Dtype>
void Blob<Dtype>::Reshape(const vector<int>& shape) {
  const Shape checked = ToShape(shape);
  if (net_blob_ != nullptr) {
    if (!(net_blob_->blob->shape() == checked)) net_blob_->blob->Reshape(checked);
    net_blob_->borrowed();  // drops the caller's memory if the blob has outgrown it
    return;
  }
  shape_ = shape;
  count_ = static_cast<int>(checked.count());
  if (data_ == nullptr || count_ > capacity_) Allocate();
}

template <typename Dtype>
void Blob<Dtype>::Reshape(const int num, const int channels, const int height, const int width) {
  Reshape(vector<int>{num, channels, height, width});
}

template <typename Dtype>
void Blob<Dtype>::Reshape(const BlobShape& shape) {
  vector<int> extents;
  for (const int64_t extent : shape.dim()) {
    Require(extent >= 0 && extent <= INT_MAX, "a blob's extent is ", extent,
            "; it must be at least 0 and fit an int");
    extents.push_back(static_cast<int>(extent));
  }
  Reshape(extents);
}

template <typename Dtype>
void Blob<Dtype>::ReshapeLike(const Blob& other) {
  Reshape(other.shape());
}

template <typename Dtype>
const vector<int>& Blob<Dtype>::shape() const {
  Refresh();
  return shape_;
}

template <typename Dtype>
int Blob<Dtype>::count() const {
  return net_blob_ == nullptr ? count_ : static_cast<int>(net_blob_->blob->count());
}

template <typename Dtype>
int Blob<Dtype>::count(int start_axis, int end_axis) const {
  const vector<int>& extents = shape();
  Require(0 <= start_axis && start_axis <= end_axis && end_axis <= static_cast<int>(extents.size()),
          "count(", start_axis, ", ", end_axis, ") of a blob with ", extents.size(), " axes");
  int count = 1;
  for (int i = start_axis; i < end_axis; ++i) count *= extents[i];
  return count;
}

template <typename Dtype>
int Blob<Dtype>::CanonicalAxisIndex(int axis_index) const {
  return ToShape(shape()).CanonicalAxis(axis_index);
}

template <typename Dtype>
int Blob<Dtype>::LegacyShape(int index) const {
  Require(num_axes() <= 4,
          "num, channels, height and width are of blobs with at most 4 axes, this "
          "one has ",
          num_axes(), "; use shape(i)");
  Require(-4 <= index && index < 4, "LegacyShape(", index, "): there are 4 axes");
  if (index >= num_axes() || index < -num_axes()) return 1;
  return shape(index);
}

template <typename Dtype>
string Blob<Dtype>::shape_string() const {
  std::ostringstream text;
  for (const int extent : shape()) text << extent << " ";
  text << "(" << count() << ")";
  return text.str();
}

template <typename Dtype>
int Blob<Dtype>::offset(const int n, const int c, const int h, const int w) const {
  return offset(vector<int>{n, c, h, w});
}

template <typename Dtype>
int Blob<Dtype>::offset(const vector<int>& indices) const {
  // Four indices may also address the legacy view, which adds axes.
  const int axes = indices.size() == 4 && num_axes() < 4 ? 4 : num_axes();
  Require(static_cast<int>(indices.size()) <= axes, "offset: ", indices.size(),
          " indices for a blob of shape ", shape_string());
  int offset = 0;
  for (int i = 0; i < axes; ++i) {
    const int extent = i < num_axes() ? shape()[i] : 1;
    const int index = i < static_cast<int>(indices.size()) ? indices[i] : 0;
    Require(index >= 0 && index < extent, "offset: index ", index, " of axis ", i,
            " is outside a blob of shape ", shape_string());
    offset = offset * extent + index;
  }
  return offset;
}

template <typename Dtype>
const Dtype* Blob<Dtype>::cpu_data() const {
  Require(data_ != nullptr, "the blob has no shape yet; call Reshape");
  return static_cast<const Dtype*>(data_->cpu_data());
}
template <typename Dtype>
Dtype* Blob<Dtype>::mutable_cpu_data() {
  Require(data_ != nullptr, "the blob has no shape yet; call Reshape");
  return static_cast<Dtype*>(data_->mutable_cpu_data());
}
template <typename Dtype>
const Dtype* Blob<Dtype>::cpu_diff() const {
  Require(diff_ != nullptr, "the blob has no shape yet; call Reshape");
  return static_cast<const Dtype*>(diff_->cpu_data());
}
template <typename Dtype>
Dtype* Blob<Dtype>::mutable_cpu_diff() {
  Require(diff_ != nullptr, "the blob has no shape yet; call Reshape");
  return static_cast<Dtype*>(diff_->mutable_cpu_data());
}
template <typename Dtype>
const Dtype* Blob<Dtype>::gpu_data() const {
  Require(data_ != nullptr, "the blob has no shape yet; call Reshape");
  return static_cast<const Dtype*>(data_->gpu_data());
}
template <typename Dtype>
Dtype* Blob<Dtype>::mutable_gpu_data() {
  Require(data_ != nullptr, "the blob has no shape yet; call Reshape");
  return static_cast<Dtype*>(data_->mutable_gpu_data());
}
template <typename Dtype>
const Dtype* Blob<Dtype>::gpu_diff() const {
  Require(diff_ != nullptr, "the blob has no shape yet; call Reshape");
  return static_cast<const Dtype*>(diff_->gpu_data());
}
template <typename Dtype>
Dtype* Blob<Dtype>::mutable_gpu_diff() {
  Require(diff_ != nullptr, "the blob has no shape yet; call Reshape");
  return static_cast<Dtype*>(diff_->mutable_gpu_data());
}

template <typename Dtype>
const int* Blob<Dtype>::gpu_shape() const {
  shape_data_ = std::make_shared<SyncedMemory>(shape().size() * sizeof(int));
  std::copy(shape_.begin(), shape_.end(), static_cast<int*>(shape_data_->mutable_cpu_data()));
  return static_cast<const int*>(shape_data_->gpu_data());
}

template <typename Dtype>
void Blob<Dtype>::set_cpu_data(Dtype* data) {
  Require(data_ != nullptr, "the blob has no shape yet; call Reshape");
  // Matches the present size, because the caller's memory has that size.
  if (net_blob_ == nullptr && capacity_ != count_) Allocate();
  data_->set_cpu_data(data);
}
template <typename Dtype>
void Blob<Dtype>::set_gpu_data(Dtype* data) {
  Require(data_ != nullptr, "the blob has no shape yet; call Reshape");
  if (net_blob_ == nullptr && capacity_ != count_) Allocate();
  data_->set_gpu_data(data);
}

template <typename Dtype>
void Blob<Dtype>::CopyFrom(const Blob& source, bool copy_diff, bool reshape) {
  if (source.shape() != shape()) {
    Require(reshape, "CopyFrom: the source has shape ", source.shape_string(), ", this blob ",
            shape_string(), "; pass reshape = true, or reshape it first");
    ReshapeLike(source);
  }
  if (copy_diff) {
    std::copy_n(source.cpu_diff(), count(), mutable_cpu_diff());
  } else {
    std::copy_n(source.cpu_data(), count(), mutable_cpu_data());
  }
}

template <typename Dtype>
void Blob<Dtype>::Update() {
  RequireNumbers<Dtype>("Update");
  Dtype* const data = mutable_cpu_data();
  const Dtype* const diff = cpu_diff();
  for (int i = 0; i < count(); ++i) data[i] -= diff[i];
}

template <typename Dtype>
void Blob<Dtype>::FromProto(const BlobProto& proto, bool reshape) {
  RequireNumbers<Dtype>("FromProto");
  if (reshape) {
    Reshape(ToExtents(ShapeOf(proto)));
  } else {
    Require(ShapeEquals(proto), "FromProto: the message has shape ", ShapeOf(proto), ", the blob ",
            shape_string());
  }
  const std::vector<double> data = ReadBlobDoubles(proto);
  std::copy(data.begin(), data.end(), mutable_cpu_data());
  const std::vector<double> diff = ReadBlobDoubles(proto, /*diff=*/true);
  if (!diff.empty()) std::copy(diff.begin(), diff.end(), mutable_cpu_diff());
}

template <typename Dtype>
void Blob<Dtype>::ToProto(BlobProto* proto, bool write_diff) const {
  RequireNumbers<Dtype>("ToProto");
  proto->Clear();
  const size_t size = static_cast<size_t>(count());
  const Shape extents = ToShape(shape());
  if constexpr (std::is_same_v<Dtype, float>) {
    WriteBlobFloats(extents, {cpu_data(), size}, proto);
    if (write_diff) WriteBlobFloats(extents, {cpu_diff(), size}, proto, /*diff=*/true);
  } else if constexpr (std::is_same_v<Dtype, double>) {
    WriteBlobDoubles(extents, {cpu_data(), size}, proto);
    if (write_diff) WriteBlobDoubles(extents, {cpu_diff(), size}, proto, /*diff=*/true);
  }
}

// A blob without memory, which has no shape yet, has sum 0.
template <typename Dtype>
Dtype Blob<Dtype>::asum_data() const {
  return data_ ? SumOfMagnitudes(cpu_data(), count()) : Dtype(0);
}
template <typename Dtype>
Dtype Blob<Dtype>::asum_diff() const {
  return diff_ ? SumOfMagnitudes(cpu_diff(), count()) : Dtype(0);
}
template <typename Dtype>
Dtype Blob<Dtype>::sumsq_data() const {
  return data_ ? SumOfSquares(cpu_data(), count()) : Dtype(0);
}
template <typename Dtype>
Dtype Blob<Dtype>::sumsq_diff() const {
  return diff_ ? SumOfSquares(cpu_diff(), count()) : Dtype(0);
}

template <typename Dtype>
void Blob<Dtype>::scale_data(Dtype scale_factor) {
  if (!data_) return;
  Dtype* const data = mutable_cpu_data();
  for (int i = 0; i < count(); ++i) data[i] *= scale_factor;
}
template <typename Dtype>
void Blob<Dtype>::scale_diff(Dtype scale_factor) {
  if (!diff_) return;
  Dtype* const diff = mutable_cpu_diff();
  for (int i = 0; i < count(); ++i) diff[i] *= scale_factor;
}

template <typename Dtype>
void Blob<Dtype>::ShareData(const Blob& other) {
  Require(count() == other.count(), "ShareData: the other blob has shape ", other.shape_string(),
          ", this one ", shape_string(), "; the counts must agree");
  if (net_blob_ != nullptr && other.net_blob_ != nullptr) {
    net_blob_->blob->ShareData(*other.net_blob_->blob);
    return;
  }
  Require(net_blob_ == nullptr,
          "ShareData: a net's blob cannot take memory from outside the net; "
          "copy the values to mutable_cpu_data()");
  data_ = other.data_;
}
template <typename Dtype>
void Blob<Dtype>::ShareDiff(const Blob& other) {
  Require(count() == other.count(), "ShareDiff: the other blob has shape ", other.shape_string(),
          ", this one ", shape_string(), "; the counts must agree");
  if (net_blob_ != nullptr && other.net_blob_ != nullptr) {
    net_blob_->blob->ShareDiff(*other.net_blob_->blob);
    return;
  }
  Require(net_blob_ == nullptr,
          "ShareDiff: a net's blob cannot take memory from outside the net; "
          "copy the values to mutable_cpu_diff()");
  diff_ = other.diff_;
}

template <typename Dtype>
bool Blob<Dtype>::ShapeEquals(const BlobProto& other) {
  const bool is_old =
      other.has_num() || other.has_channels() || other.has_height() || other.has_width();
  const vector<int> theirs = ToExtents(ShapeOf(other));
  if (!is_old) return shape() == theirs;
  if (num_axes() > 4) return false;
  for (int i = -4; i < 0; ++i) {
    if (LegacyShape(i) != theirs[i + 4]) return false;
  }
  return true;
}

template class Blob<float>;
template class Blob<double>;
template class Blob<int>;
template class Blob<unsigned int>;

}  // namespace caffe::bvlc
