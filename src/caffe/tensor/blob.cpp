#include "caffe/blob.hpp"

#include <cmath>
#include <cstring>

#include "caffe/core/thread_claim.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

double SumOfMagnitudes(const double* x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::abs(x[i]);
  return sum;
}

double SumOfSquares(const double* x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i] * x[i];
  return sum;
}

// Reduces in double. Reads a view in the tensor's own dtype if that is double, else in float, which
// users have most often mirrored already.
template <typename Reduction>
double Reduce(SyncedTensor& tensor, Reduction reduce) {
  const bool is_double = tensor.desc().dtype == DType::kDouble;
  return VisitFloat(is_double ? DType::kDouble : DType::kFloat, [&]<typename T>(TypeTag<T>) {
    const T* elements = tensor.host<T>();
    std::vector<double> values(elements, elements + tensor.desc().count());
    return reduce(values.data(), tensor.desc().count());
  });
}

void Share(SyncedTensor& mine, SyncedTensor& theirs) {
  Require(mine.desc().count() == theirs.desc().count(), "cannot share memory of shape ",
          theirs.desc().shape, " with a blob of shape ", mine.desc().shape,
          "; the element counts must agree");
  Require(mine.desc().dtype == theirs.desc().dtype, "cannot share memory of type ",
          Name(theirs.desc().dtype), " with a blob of type ", Name(mine.desc().dtype),
          "; give both layers one type, or copy the numbers");
  mine.ShareWith(theirs);
}

SyncedTensor& Kept(SyncedTensor& tensor) {
  Require(tensor.is_kept(), "blob of shape ", tensor.desc().shape,
          ": its numbers are not kept by this net's plan; make the net, or the solver, with "
          "keep_all=True (NetOptions::keep_all, SolverOptions::keep_all)");
  return tensor;
}

}  // namespace

Blob::Blob() : Blob(Shape{0}) {}

Blob::Blob(const Shape& shape, DType dtype) : Blob(MakeDevice(DeviceKind::kCpu), shape, dtype) {}

Blob::Blob(std::shared_ptr<Device> device, const Shape& shape, DType dtype,
           std::shared_ptr<const ThreadClaim> net)
    : data_(std::make_unique<SyncedTensor>(device)),
      diff_(std::make_unique<SyncedTensor>(device)),
      net_(std::move(net)) {
  data_->Reset({shape, dtype, Layout::kPlain});
  diff_->Reset({shape, dtype, Layout::kPlain});
}

Blob::~Blob() = default;

const Shape& Blob::shape() const {
  return data_->desc().shape;
}

DType Blob::dtype() const {
  return data_->desc().dtype;
}

void Blob::CheckNetIsIdle() const {
  if (net_ != nullptr) net_->CheckNotElsewhere("blob's net");
}

std::string Blob::shape_string() const {
  std::string text;
  for (const int64_t extent : shape().dims()) text += std::to_string(extent) + " ";
  return text + "(" + std::to_string(count()) + ")";
}

void Blob::Reshape(const Shape& shape) {
  if (net_ != nullptr) net_->CheckIdle("blob's net");
  for (SyncedTensor* tensor : {data_.get(), diff_.get()}) {
    tensor->Reset({shape, tensor->desc().dtype, Layout::kPlain});
  }
}

template <typename T>
const T* Blob::cpu_data() const {
  CheckNetIsIdle();
  return Kept(*data_).host<T>();
}
template <typename T>
T* Blob::mutable_cpu_data() {
  CheckNetIsIdle();
  return Kept(*data_).mutable_host<T>();
}
template <typename T>
const T* Blob::cpu_diff() const {
  CheckNetIsIdle();
  return Kept(*diff_).host<T>();
}
template <typename T>
T* Blob::mutable_cpu_diff() {
  CheckNetIsIdle();
  return Kept(*diff_).mutable_host<T>();
}
template <typename T>
std::shared_ptr<T> Blob::hold_cpu_data() {
  CheckNetIsIdle();
  return std::static_pointer_cast<T>(Kept(*data_).HoldHost(kDTypeOf<T>));
}
template <typename T>
std::shared_ptr<T> Blob::hold_cpu_diff() {
  CheckNetIsIdle();
  return std::static_pointer_cast<T>(Kept(*diff_).HoldHost(kDTypeOf<T>));
}

#define CAFFE_INSTANTIATE_BLOB_ACCESS(T)                \
  template const T* Blob::cpu_data<T>() const;          \
  template T* Blob::mutable_cpu_data<T>();              \
  template const T* Blob::cpu_diff<T>() const;          \
  template T* Blob::mutable_cpu_diff<T>();              \
  template std::shared_ptr<T> Blob::hold_cpu_data<T>(); \
  template std::shared_ptr<T> Blob::hold_cpu_diff<T>();
CAFFE_INSTANTIATE_BLOB_ACCESS(double)
CAFFE_INSTANTIATE_BLOB_ACCESS(float)
CAFFE_INSTANTIATE_BLOB_ACCESS(float16)
CAFFE_INSTANTIATE_BLOB_ACCESS(bfloat16)
#undef CAFFE_INSTANTIATE_BLOB_ACCESS

double Blob::asum_data() const {
  return Reduce(Kept(*data_), SumOfMagnitudes);
}
double Blob::asum_diff() const {
  return Reduce(Kept(*diff_), SumOfMagnitudes);
}
double Blob::sumsq_data() const {
  return Reduce(Kept(*data_), SumOfSquares);
}
double Blob::sumsq_diff() const {
  return Reduce(Kept(*diff_), SumOfSquares);
}

void Blob::CopyFrom(const Blob& source, bool copy_diff) {
  Require(source.shape() == shape(), "cannot copy a blob of shape ", source.shape(),
          " into one of shape ", shape(), "; reshape it first");
  SyncedTensor& from = Kept(copy_diff ? *source.diff_ : *source.data_);
  SyncedTensor& to = Kept(copy_diff ? *diff_ : *data_);
  VisitFloat(from.desc().dtype, [&]<typename T>(TypeTag<T>) {
    std::memcpy(to.mutable_host<T>(), from.host<T>(), sizeof(T) * source.count());
  });
}

void Blob::ShareData(const Blob& other) {
  Share(*data_, *other.data_);
}
void Blob::ShareDiff(const Blob& other) {
  Share(*diff_, *other.diff_);
}

}  // namespace caffe
