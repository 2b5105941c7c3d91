// DataTransformer<Dtype>: crops, mirrors, subtracts the mean and scales, as transform_param says.
#pragma once

#include <memory>
#include <vector>

#include "blob.hpp"
#include "caffe/proto/caffe.pb.h"
#include "common.hpp"
#include "util/io.hpp"

CAFFE_BVLC_BEGIN
// Throws caffe::Error for options that exclude each other, and for images and blobs whose shapes do
// not match.
template <typename Dtype>
class DataTransformer {
 public:
  explicit DataTransformer(const TransformationParameter& param, Phase phase);
  virtual ~DataTransformer();

  // Takes a new seed for mirroring and random crops from Caffe::rng_stream().
  void InitRand();

  // transformed_blob has the shape that InferBlobShape gives.
  void Transform(const Datum& datum, Blob<Dtype>* transformed_blob);
  // Transforms one datum for each item of the blob, or fewer.
  void Transform(const vector<Datum>& datum_vector, Blob<Dtype>* transformed_blob);
  // Transforms each item of a blob of images.
  void Transform(Blob<Dtype>* input_blob, Blob<Dtype>* transformed_blob);
  vector<int> InferBlobShape(const Datum& datum);
  vector<int> InferBlobShape(const vector<Datum>& datum_vector);

#ifdef USE_OPENCV
  void Transform(const cv::Mat& cv_img, Blob<Dtype>* transformed_blob) {
    Transform(ToDatum(cv_img), transformed_blob);
  }
  void Transform(const vector<cv::Mat>& mat_vector, Blob<Dtype>* transformed_blob) {
    Transform(ToDatums(mat_vector), transformed_blob);
  }
  vector<int> InferBlobShape(const cv::Mat& cv_img) {
    return InferBlobShape(ToDatum(cv_img));
  }
  vector<int> InferBlobShape(const vector<cv::Mat>& mat_vector) {
    return InferBlobShape(ToDatums(mat_vector));
  }
#endif

 protected:
  // A number in [0, n).
  virtual int Rand(int n);

  TransformationParameter param_;
  Phase phase_;

 private:
  struct Work;

#ifdef USE_OPENCV
  static Datum ToDatum(const cv::Mat& image) {
    Datum datum;
    CVMatToDatum(image, &datum);
    return datum;
  }
  static vector<Datum> ToDatums(const vector<cv::Mat>& images) {
    vector<Datum> datums;
    for (size_t i = 0; i < images.size(); ++i) datums.push_back(ToDatum(images[i]));
    return datums;
  }
#endif

  std::unique_ptr<Work> work_;

  DISABLE_COPY_AND_ASSIGN(DataTransformer);
};

extern template class DataTransformer<float>;
extern template class DataTransformer<double>;

CAFFE_BVLC_END
