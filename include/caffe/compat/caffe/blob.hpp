// Blob<Dtype>: a tensor with its values (data) and its gradient (diff).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"
#include "common.hpp"
#include "syncedmem.hpp"

const int kMaxBlobAxes = 32;

CAFFE_BVLC_BEGIN
// The blob of Cortado's net that a Blob wraps.
class NetBlob;

// A blob either has its own memory, which only grows, or wraps a blob of a net: then its shape and
// its values are the net's. Wrong arguments throw caffe::Error, which is a std::runtime_error.
template <typename Dtype>
class Blob {
 public:
  Blob();
  explicit Blob(const int num, const int channels, const int height, const int width);
  explicit Blob(const vector<int>& shape);
  // For the library.
  explicit Blob(const std::shared_ptr<NetBlob>& net_blob);
  ~Blob();

  void Reshape(const int num, const int channels, const int height, const int width);
  void Reshape(const vector<int>& shape);
  void Reshape(const BlobShape& shape);
  void ReshapeLike(const Blob& other);

  string shape_string() const;
  const vector<int>& shape() const;
  int shape(int index) const { return shape()[CanonicalAxisIndex(index)]; }
  int num_axes() const { return static_cast<int>(shape().size()); }
  int count() const;
  // Product of the axes [start_axis, end_axis).
  int count(int start_axis, int end_axis) const;
  int count(int start_axis) const { return count(start_axis, num_axes()); }
  // Maps -1 to the last axis, and so on.
  int CanonicalAxisIndex(int axis_index) const;

  // The legacy view of at most 4 axes; missing axes have extent 1.
  int num() const { return LegacyShape(0); }
  int channels() const { return LegacyShape(1); }
  int height() const { return LegacyShape(2); }
  int width() const { return LegacyShape(3); }
  int LegacyShape(int index) const;

  int offset(const int n, const int c = 0, const int h = 0, const int w = 0) const;
  int offset(const vector<int>& indices) const;

  void CopyFrom(const Blob<Dtype>& source, bool copy_diff = false, bool reshape = false);

  Dtype data_at(const int n, const int c, const int h, const int w) const {
    return cpu_data()[offset(n, c, h, w)];
  }
  Dtype diff_at(const int n, const int c, const int h, const int w) const {
    return cpu_diff()[offset(n, c, h, w)];
  }
  Dtype data_at(const vector<int>& index) const { return cpu_data()[offset(index)]; }
  Dtype diff_at(const vector<int>& index) const { return cpu_diff()[offset(index)]; }

  const shared_ptr<SyncedMemory>& data() const { return data_; }
  const shared_ptr<SyncedMemory>& diff() const { return diff_; }

  const Dtype* cpu_data() const;
  void set_cpu_data(Dtype* data);
  // The shape as integers in the GPU's memory.
  const int* gpu_shape() const;
  const Dtype* gpu_data() const;
  void set_gpu_data(Dtype* data);
  const Dtype* cpu_diff() const;
  const Dtype* gpu_diff() const;
  Dtype* mutable_cpu_data();
  Dtype* mutable_gpu_data();
  Dtype* mutable_cpu_diff();
  Dtype* mutable_gpu_diff();

  // data -= diff.
  void Update();
  void FromProto(const BlobProto& proto, bool reshape = true);
  void ToProto(BlobProto* proto, bool write_diff = false) const;

  Dtype asum_data() const;
  Dtype asum_diff() const;
  Dtype sumsq_data() const;
  Dtype sumsq_diff() const;
  void scale_data(Dtype scale_factor);
  void scale_diff(Dtype scale_factor);

  // Shares the other blob's memory; the counts have to agree.
  void ShareData(const Blob& other);
  void ShareDiff(const Blob& other);
  // Compares the trailing axes with a legacy shape of four numbers.
  bool ShapeEquals(const BlobProto& other);

 private:
  template <typename T>
  friend class LayerBridge;
  template <typename T>
  friend class BuiltinLayer;
  template <typename T>
  friend class Loan;

  void Allocate();
  // Wraps the blob of a net; null switches back to the blob's own memory.
  void Show(const std::shared_ptr<NetBlob>& net_blob);
  // Takes over the shape that the net has given its blob.
  void Refresh() const;

  shared_ptr<SyncedMemory> data_;
  shared_ptr<SyncedMemory> diff_;
  mutable shared_ptr<SyncedMemory> shape_data_;
  mutable vector<int> shape_;
  mutable int count_;
  int capacity_;
  std::shared_ptr<NetBlob> net_blob_;

  DISABLE_COPY_AND_ASSIGN(Blob);
};

extern template class Blob<float>;
extern template class Blob<double>;
extern template class Blob<int>;
extern template class Blob<unsigned int>;

CAFFE_BVLC_END
