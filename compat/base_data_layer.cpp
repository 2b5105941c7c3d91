#include "caffe/compat/caffe/layers/base_data_layer.hpp"

#include <algorithm>

#include "caffe/error.hpp"

namespace caffe::bvlc {

template <typename Dtype>
BasePrefetchingDataLayer<Dtype>::BasePrefetchingDataLayer(const LayerParameter& param)
    : BaseDataLayer<Dtype>(param), prefetch_current_(nullptr) {
  const int batches = std::max(1, static_cast<int>(param.data_param().prefetch()));
  for (int i = 0; i < batches; ++i) {
    prefetch_.push_back(std::make_shared<Batch<Dtype>>());
    prefetch_free_.push(prefetch_.back().get());
  }
}

template <typename Dtype>
void BasePrefetchingDataLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom,
                                                 const vector<Blob<Dtype>*>& top) {
  BaseDataLayer<Dtype>::LayerSetUp(bottom, top);
  StartInternalThread();
}

template <typename Dtype>
void BasePrefetchingDataLayer<Dtype>::InternalThreadEntry() {
  try {
    while (!must_stop()) {
      Batch<Dtype>* const batch = prefetch_free_.pop();
      if (batch == nullptr) return;
      load_batch(batch);
      prefetch_full_.push(batch);
    }
  } catch (const std::exception& error) {
    failure_ = error.what();
    prefetch_full_.end();
  }
}

template <typename Dtype>
void BasePrefetchingDataLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>&,
                                                  const vector<Blob<Dtype>*>& top) {
  if (prefetch_current_ != nullptr) prefetch_free_.push(prefetch_current_);
  prefetch_current_ = prefetch_full_.pop("Waiting for data");
  if (prefetch_current_ == nullptr) throw IoError("in load_batch: " + failure_);
  const Blob<Dtype>* const parts[] = {&prefetch_current_->data_, &prefetch_current_->label_};
  for (size_t i = 0; i < (this->output_labels_ ? 2 : 1); ++i) {
    top[i]->ReshapeLike(*parts[i]);
    std::copy_n(parts[i]->cpu_data(), parts[i]->count(), top[i]->mutable_cpu_data());
  }
}

template class BasePrefetchingDataLayer<float>;
template class BasePrefetchingDataLayer<double>;

}  // namespace caffe::bvlc
