// MemoryDataLayer<Dtype>: delivers batches from arrays or images of the caller.
#pragma once

#include <vector>

#include "../data_transformer.hpp"
#include "base_data_layer.hpp"
#include "builtin_layer.hpp"

CAFFE_BVLC_BEGIN
// Returned by Net::layers() and layer_by_name().
template <typename Dtype>
class MemoryDataLayer : public BuiltinLayer<Dtype> {
 public:
  // For the library: layer `index` of a net.
  MemoryDataLayer(const LayerParameter& param, NetAccess* net, int index);

  // Transforms the data as transform_param says and keeps the result until the next call of one of
  // these. The number of items must be a multiple of batch_size.
  void AddDatumVector(const vector<Datum>& datum_vector);
#ifdef USE_OPENCV
  void AddMatVector(const vector<cv::Mat>& mat_vector, const vector<int>& labels) {
    CHECK_EQ(mat_vector.size(), labels.size());
    vector<Datum> datums(mat_vector.size());
    for (size_t i = 0; i < datums.size(); ++i) {
      CVMatToDatum(mat_vector[i], &datums[i]);
      datums[i].set_label(labels[i]);
    }
    AddDatumVector(datums);
  }
#endif
  // Arrays of n items; the caller keeps ownership, and they must outlive their use.
  void Reset(Dtype* data, Dtype* label, int n);
  // Not available, because the plan is compiled for its batch size: set memory_data_param {
  // batch_size } before the net is created.
  void set_batch_size(int new_size) = delete;

  int batch_size() {
    return options().batch_size();
  }
  int channels() {
    return options().channels();
  }
  int height() {
    return options().height();
  }
  int width() {
    return options().width();
  }

 private:
  const MemoryDataParameter& options() const {
    return this->layer_param_.memory_data_param();
  }
  void Give(const float* data, const float* labels, int n);

  NetAccess* net_;
  int index_;
  vector<float> data_, labels_;
};

extern template class MemoryDataLayer<float>;
extern template class MemoryDataLayer<double>;

CAFFE_BVLC_END
