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
// before the net runs next. A pointer stays valid until the blob is reshaped; after the net has
// run, ask again instead of reading or writing by an old pointer: the net may have kept what it
// made of the old values (hold_cpu_data() has pointers to keep). One thread at a time.
class CAFFE_EXPORT Blob {
 public:
  // A host blob of its own, zero-filled.
  Blob();
  explicit Blob(const Shape& shape, DType dtype = DType::kFloat);
  // A net's: while another thread runs it, everything below throws InvalidArgument.
  Blob(std::shared_ptr<Device> device, const Shape& shape, DType dtype,
       std::shared_ptr<const ThreadClaim> net = nullptr);
  ~Blob();
  Blob(const Blob&) = delete;
  Blob& operator=(const Blob&) = delete;

  const Shape& shape() const;
  // In which the net stores it.
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

  // Changes the shape; contents are kept when the count stays, else zeroed. Throws InvalidArgument
  // for what Shape does not take, and while the net runs.
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
  // The same memory for as long as somebody keeps the pointer, whatever becomes of the blob and its
  // net. What is written there is taken over before each run, what a run computed is there after
  // it; reshaping to another count and sharing end that. Where the net stores another layout or
  // type, or on another device, this costs a copy for each run while the pointer is kept.
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
  // Uses the other blob's memory from now on. Throws InvalidArgument unless counts and types agree.
  void ShareData(const Blob& other);
  void ShareDiff(const Blob& other);

  // For the compiler.
  SyncedTensor& data_tensor() const { return *data_; }
  SyncedTensor& diff_tensor() const { return *diff_; }

 private:
  void CheckNetIsIdle() const;

  std::unique_ptr<SyncedTensor> data_;
  std::unique_ptr<SyncedTensor> diff_;
  std::shared_ptr<const ThreadClaim> net_;
};

}  // namespace caffe
