// Blob: a named tensor of a net, its values (data) and its gradient (diff).
//
//     caffe::Blob& input = *net.input_blobs()[0];
//     input.Reshape(2, 3, 224, 224);
//     std::fill_n(input.mutable_cpu_data(), input.count(), 0.5f);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/dtype.hpp"
#include "caffe/export.hpp"
#include "caffe/shape.hpp"

namespace caffe {

class Device;
class SyncedTensor;
class ThreadClaim;

// Data and diff have the blob's shape, count() elements each.
//
// The user's view is always plain row-major N,C,H,W, whatever layout and type the compiled plan
// uses: cpu_data<T>() converts a copy when it has to, and mutable_cpu_data<T>() is written back
// before the net runs next. A pointer stays valid until the blob is reshaped. After the net has
// run, get a new pointer instead of using an old one: the net may have cached data that it derived
// from the old values (hold_cpu_data() returns pointers that stay usable). One thread at a time.
class CAFFE_EXPORT Blob {
 public:
  // Creates a zero-filled host blob that belongs to no net.
  Blob();
  explicit Blob(const Shape& shape, DType dtype = DType::kFloat);
  // Creates a blob of a net: while another thread runs `net`, everything below throws
  // InvalidArgument.
  Blob(std::shared_ptr<Device> device, const Shape& shape, DType dtype,
       std::shared_ptr<const ThreadClaim> net = nullptr);
  ~Blob();
  Blob(const Blob&) = delete;
  Blob& operator=(const Blob&) = delete;

  const Shape& shape() const;
  // The type in which the net stores the blob.
  DType dtype() const;
  // Extent of one axis; negative counts from the end. Throws InvalidArgument.
  int shape(int axis) const { return static_cast<int>(shape()[axis]); }
  int num_axes() const { return shape().num_axes(); }
  int64_t count() const { return shape().count(); }
  // "1 3 4 5 (60)", as Caffe prints it.
  std::string shape_string() const;
  // Caffe's legacy N,C,H,W view: 1 for axes that the blob does not have.
  int num() const { return static_cast<int>(shape().LegacyExtent(0)); }
  int channels() const { return static_cast<int>(shape().LegacyExtent(1)); }
  int height() const { return static_cast<int>(shape().LegacyExtent(2)); }
  int width() const { return static_cast<int>(shape().LegacyExtent(3)); }

  // Changes the shape; the contents are kept when the count stays the same and zeroed otherwise.
  // Throws InvalidArgument for a shape that Shape rejects, and while the net runs.
  void Reshape(const Shape& shape);
  void Reshape(int num, int channels, int height, int width) {
    Reshape(Shape{num, channels, height, width});
  }

  // T is double, float, float16 or bfloat16.
  template <typename T = float>
  const T* cpu_data() const;
  template <typename T = float>
  T* mutable_cpu_data();
  template <typename T = float>
  const T* cpu_diff() const;
  template <typename T = float>
  T* mutable_cpu_diff();
  // Returns memory that stays the same for as long as the pointer is kept, even after the blob or
  // its net is gone. The net reads values written there before each run and writes its results
  // there after it, until the blob is reshaped to another count or shares other data. Where the net
  // stores another layout or type, or runs on another device, each run costs a copy while the
  // pointer is kept.
  template <typename T = float>
  std::shared_ptr<T> hold_cpu_data();
  template <typename T = float>
  std::shared_ptr<T> hold_cpu_diff();

  // Sum of absolute values and sum of squares, in double.
  double asum_data() const;
  double asum_diff() const;
  double sumsq_data() const;
  double sumsq_diff() const;

  // Copies values (or gradients) from a blob of equal shape. Throws InvalidArgument.
  void CopyFrom(const Blob& source, bool copy_diff = false);
  // Shares the other blob's memory. Throws InvalidArgument unless counts and types agree.
  void ShareData(const Blob& other);
  void ShareDiff(const Blob& other);

  // For the compiler only.
  SyncedTensor& data_tensor() const { return *data_; }
  SyncedTensor& diff_tensor() const { return *diff_; }

 private:
  void CheckNetIsIdle() const;

  std::unique_ptr<SyncedTensor> data_;
  std::unique_ptr<SyncedTensor> diff_;
  std::shared_ptr<const ThreadClaim> net_;
};

}  // namespace caffe
