#include "caffe/compat/caffe/layer.hpp"

#include "caffe/error.hpp"

namespace caffe::bvlc {
namespace {

// -1: any number.
void CheckCount(const char* what, size_t count, int exact, int least, int most) {
  const int blobs = static_cast<int>(count);
  Require(exact < 0 || blobs == exact, "takes ", exact, " ", what, " blob(s), has ", blobs);
  Require(least < 0 || blobs >= least, "takes at least ", least, " ", what, " blob(s), has ",
          blobs);
  Require(most < 0 || blobs <= most, "takes at most ", most, " ", what, " blob(s), has ", blobs);
}

}  // namespace

template <typename Dtype>
Layer<Dtype>::Layer(const LayerParameter& param) : layer_param_(param), phase_(param.phase()) {
  for (const BlobProto& proto : param.blobs()) {
    blobs_.push_back(std::make_shared<Blob<Dtype>>());
    blobs_.back()->FromProto(proto);
  }
}

template <typename Dtype>
void Layer<Dtype>::SetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  CheckBlobCounts(bottom, top);
  LayerSetUp(bottom, top);
  Reshape(bottom, top);
  SetLossWeights(top);
}

template <typename Dtype>
Dtype Layer<Dtype>::Forward(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  Reshape(bottom, top);
  if (Caffe::mode() == Caffe::GPU) {
    Forward_gpu(bottom, top);
  } else {
    Forward_cpu(bottom, top);
  }
  Dtype loss = 0;
  for (size_t i = 0; i < top.size(); ++i) {
    if (this->loss(static_cast<int>(i)) == Dtype(0)) continue;
    loss += caffe_cpu_dot(top[i]->count(), top[i]->cpu_data(), top[i]->cpu_diff());
  }
  return loss;
}

template <typename Dtype>
void Layer<Dtype>::Backward(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
  if (Caffe::mode() == Caffe::GPU) {
    Backward_gpu(top, propagate_down, bottom);
  } else {
    Backward_cpu(top, propagate_down, bottom);
  }
}

template <typename Dtype>
void Layer<Dtype>::ToProto(LayerParameter* param, bool write_diff) {
  *param = layer_param_;
  param->clear_blobs();
  for (const auto& blob : blobs_) blob->ToProto(param->add_blobs(), write_diff);
}

template <typename Dtype>
void Layer<Dtype>::CheckBlobCounts(const vector<Blob<Dtype>*>& bottom,
                                   const vector<Blob<Dtype>*>& top) {
  CheckCount("bottom", bottom.size(), ExactNumBottomBlobs(), MinBottomBlobs(), MaxBottomBlobs());
  CheckCount("top", top.size(), ExactNumTopBlobs(), MinTopBlobs(), MaxTopBlobs());
  Require(!EqualNumBottomTopBlobs() || bottom.size() == top.size(),
          "takes as many bottoms as tops, has ", bottom.size(), " and ", top.size());
}

template class Layer<float>;
template class Layer<double>;

}  // namespace caffe::bvlc
