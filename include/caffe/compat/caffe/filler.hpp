// Fillers: initialise parameters. Random numbers come from Caffe::rng_stream().
#pragma once

#include <string>

#include "blob.hpp"
#include "caffe/proto/caffe.pb.h"
#include "common.hpp"

CAFFE_BVLC_BEGIN
// Fills as `type` of the parameter says. Throws caffe::Error for an unknown type or an unsuitable
// shape.
template <typename Dtype>
class Filler {
 public:
  explicit Filler(const FillerParameter& param) : filler_param_(param) {}
  virtual ~Filler() {}
  virtual void Fill(Blob<Dtype>* blob);

 protected:
  FillerParameter filler_param_;
};

#define CAFFE_FILLER_CLASS(Name, type_name)                                      \
  template <typename Dtype>                                                      \
  class Name##Filler : public Filler<Dtype> {                                    \
   public:                                                                       \
    explicit Name##Filler(const FillerParameter& param) : Filler<Dtype>(param) { \
      this->filler_param_.set_type(type_name);                                   \
    }                                                                            \
  }

CAFFE_FILLER_CLASS(Constant, "constant");
CAFFE_FILLER_CLASS(Uniform, "uniform");
CAFFE_FILLER_CLASS(Gaussian, "gaussian");
CAFFE_FILLER_CLASS(PositiveUnitball, "positive_unitball");
CAFFE_FILLER_CLASS(Xavier, "xavier");
CAFFE_FILLER_CLASS(MSRA, "msra");
CAFFE_FILLER_CLASS(Bilinear, "bilinear");
#undef CAFFE_FILLER_CLASS

// The caller owns it.
template <typename Dtype>
Filler<Dtype>* GetFiller(const FillerParameter& param) {
  return new Filler<Dtype>(param);
}

extern template class Filler<float>;
extern template class Filler<double>;

CAFFE_BVLC_END
