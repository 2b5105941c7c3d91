// Base classes of layers that read data: BaseDataLayer<Dtype>, and BasePrefetchingDataLayer<Dtype>,
// which reads ahead in a thread. Exceptions of load_batch reach the net's caller.
#pragma once

#include <vector>

#include "../data_transformer.hpp"
#include "../internal_thread.hpp"
#include "../layer.hpp"
#include "../util/blocking_queue.hpp"

CAFFE_BVLC_BEGIN
template <typename Dtype>
class BaseDataLayer : public Layer<Dtype> {
 public:
  explicit BaseDataLayer(const LayerParameter& param)
      : Layer<Dtype>(param), transform_param_(param.transform_param()), output_labels_(false) {}

  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    output_labels_ = top.size() > 1;
    data_transformer_.reset(new DataTransformer<Dtype>(transform_param_, this->phase_));
    data_transformer_->InitRand();
    DataLayerSetUp(bottom, top);
  }
  virtual void DataLayerSetUp(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>&) {}
  virtual void Reshape(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>&) {}

 protected:
  virtual void Backward_cpu(const vector<Blob<Dtype>*>&, const vector<bool>&,
                            const vector<Blob<Dtype>*>&) {}
  virtual void Backward_gpu(const vector<Blob<Dtype>*>&, const vector<bool>&,
                            const vector<Blob<Dtype>*>&) {}

  TransformationParameter transform_param_;
  shared_ptr<DataTransformer<Dtype>> data_transformer_;
  bool output_labels_;
};

template <typename Dtype>
class Batch {
 public:
  Blob<Dtype> data_, label_;
};

// DataLayerSetUp sets the shapes of the tops and of the batches in prefetch_; load_batch fills one
// batch, in a thread of its own.
template <typename Dtype>
class BasePrefetchingDataLayer : public BaseDataLayer<Dtype>, public InternalThread {
 public:
  explicit BasePrefetchingDataLayer(const LayerParameter& param);
  virtual ~BasePrefetchingDataLayer() { this->StopInternalThread(); }
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void InternalThreadEntry();
  virtual void WakeInternalThread() {
    prefetch_free_.end();
    prefetch_full_.end();
  }
  virtual void load_batch(Batch<Dtype>* batch) = 0;

  vector<shared_ptr<Batch<Dtype>>> prefetch_;
  BlockingQueue<Batch<Dtype>*> prefetch_free_;
  BlockingQueue<Batch<Dtype>*> prefetch_full_;
  Batch<Dtype>* prefetch_current_;
  Blob<Dtype> transformed_data_;

 private:
  string failure_;  // why the thread has ended; empty while it works
};

extern template class BasePrefetchingDataLayer<float>;
extern template class BasePrefetchingDataLayer<double>;

CAFFE_BVLC_END
