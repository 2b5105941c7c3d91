#include "caffe/compat/caffe/layers/memory_data_layer.hpp"

#include <type_traits>

#include "caffe/error.hpp"
#include "caffe/memory_data_layer.hpp"
#include "compat/net_access.hpp"

namespace caffe::bvlc {

template <typename Dtype>
MemoryDataLayer<Dtype>::MemoryDataLayer(const LayerParameter& param, NetAccess* net, int index)
    : BuiltinLayer<Dtype>(param, net, index), net_(net), index_(index) {}

template <typename Dtype>
void MemoryDataLayer<Dtype>::Give(const float* data, const float* labels, int n) {
  auto& layer = dynamic_cast<::caffe::MemoryDataLayer&>(*net_->net->layers().at(index_));
  layer.Reset(data, labels, n);
}

template <typename Dtype>
void MemoryDataLayer<Dtype>::AddDatumVector(const vector<Datum>& datum_vector) {
  const int n = static_cast<int>(datum_vector.size());
  Require(n > 0 && n % batch_size() == 0, "AddDatumVector: ", n,
          " images are not a positive multiple of batch_size ", batch_size());
  DataTransformer<float> transformer(this->layer_param_.transform_param(), this->phase_);
  transformer.InitRand();
  Blob<float> images(n, channels(), height(), width());
  transformer.Transform(datum_vector, &images);
  data_.assign(images.cpu_data(), images.cpu_data() + images.count());
  labels_.clear();
  for (const Datum& datum : datum_vector) labels_.push_back(static_cast<float>(datum.label()));
  Give(data_.data(), labels_.data(), n);
}

template <typename Dtype>
void MemoryDataLayer<Dtype>::Reset(Dtype* data, Dtype* label, int n) {
  if constexpr (std::is_same_v<Dtype, float>) {
    Give(data, label, n);
  } else {  // the net's layer expects floats
    Require(data != nullptr && label != nullptr, "Reset: data and labels must be given");
    data_.assign(data, data + static_cast<size_t>(n) * channels() * height() * width());
    labels_.assign(label, label + n);
    Give(data_.data(), labels_.data(), n);
  }
}

template class MemoryDataLayer<float>;
template class MemoryDataLayer<double>;

}  // namespace caffe::bvlc
