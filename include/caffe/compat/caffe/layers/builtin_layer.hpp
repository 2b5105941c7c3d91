// BuiltinLayer<Dtype>: a layer of Cortado as an object with Caffe's methods.
#pragma once

#include <memory>
#include <vector>

#include "../layer.hpp"

CAFFE_BVLC_BEGIN
class NetAccess;

// Used alone, as a part of another layer or in a test, it is a compiled net of this layer only:
// SetUp, Forward and Backward copy the blobs in and out. As a layer of a net (Net::layers()) it
// exposes the parameters, and runs on the net's blobs only.
template <typename Dtype>
class BuiltinLayer : public Layer<Dtype> {
 public:
  explicit BuiltinLayer(const LayerParameter& param);
  // For the classes of the individual types.
  BuiltinLayer(const LayerParameter& param, const char* type);
  // For the library: layer `index` of `net`, which must outlive this object.
  BuiltinLayer(const LayerParameter& param, NetAccess* net, int index);
  virtual ~BuiltinLayer();

  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return this->layer_param_.type().c_str(); }
  virtual int ExactNumBottomBlobs() const;
  virtual int MinBottomBlobs() const;
  virtual int MaxBottomBlobs() const;
  virtual int ExactNumTopBlobs() const;
  virtual int MinTopBlobs() const;
  virtual int MaxTopBlobs() const;
  virtual bool EqualNumBottomTopBlobs() const;
  virtual bool AutoTopBlobs() const;
  virtual bool AllowForceBackward(const int bottom_index) const;

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

extern template class BuiltinLayer<float>;
extern template class BuiltinLayer<double>;

CAFFE_BVLC_END

// Defines class <Name>Layer for type "<Name>".
#define CAFFE_BUILTIN_LAYER(Name)                                                            \
  CAFFE_BVLC_BEGIN                                                                           \
  template <typename Dtype>                                                                  \
  class Name##Layer : public BuiltinLayer<Dtype> {                                           \
   public:                                                                                   \
    explicit Name##Layer(const LayerParameter& param) : BuiltinLayer<Dtype>(param, #Name) {} \
  };                                                                                         \
  CAFFE_BVLC_END
