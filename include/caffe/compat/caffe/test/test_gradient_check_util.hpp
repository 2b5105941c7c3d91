// GradientChecker<Dtype>: compares the gradients that a layer's Backward computes with finite
// differences of its Forward. Needs googletest.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../layer.hpp"
#include "../util/rng.hpp"

CAFFE_BVLC_BEGIN
template <typename Dtype>
class GradientChecker {
 public:
  // Central differences with step `stepsize`; errors up to `threshold` are accepted, relative to
  // the larger value (at least 1). Elements with |feature - kink| below kink_range are not
  // compared.
  GradientChecker(const Dtype stepsize, const Dtype threshold, const unsigned int seed = 1701,
                  const Dtype kink = 0., const Dtype kink_range = -1)
      : stepsize_(stepsize),
        threshold_(threshold),
        seed_(seed),
        kink_(kink),
        kink_range_(kink_range) {}

  // Sets the layer up; the objective is half the sum of squares of all tops. check_bottom: -1 for
  // all bottoms, -2 for none, otherwise the index of one.
  void CheckGradient(Layer<Dtype>* layer, const vector<Blob<Dtype>*>& bottom,
                     const vector<Blob<Dtype>*>& top, int check_bottom = -1) {
    layer->SetUp(bottom, top);
    CheckGradientSingle(layer, bottom, top, check_bottom, -1, -1);
  }

  // Checks each element of each top as an objective of its own.
  void CheckGradientExhaustive(Layer<Dtype>* layer, const vector<Blob<Dtype>*>& bottom,
                               const vector<Blob<Dtype>*>& top, int check_bottom = -1) {
    layer->SetUp(bottom, top);
    ASSERT_GT(top.size(), 0u) << "an exhaustive check needs a top";
    for (size_t i = 0; i < top.size(); ++i) {
      for (int j = 0; j < top[i]->count(); ++j) {
        CheckGradientSingle(layer, bottom, top, check_bottom, static_cast<int>(i), j);
      }
    }
  }

  // For layers whose output element j depends on input element j alone.
  void CheckGradientEltwise(Layer<Dtype>* layer, const vector<Blob<Dtype>*>& bottom,
                            const vector<Blob<Dtype>*>& top) {
    layer->SetUp(bottom, top);
    ASSERT_GT(top.size(), 0u) << "an element-wise check needs a top";
    for (size_t i = 0; i < top.size(); ++i) {
      for (int j = 0; j < top[i]->count(); ++j) {
        CheckGradientSingle(layer, bottom, top, 0, static_cast<int>(i), j, true);
      }
    }
  }

  // top_id -1: the objective over all tops; otherwise element top_data_id of that top.
  void CheckGradientSingle(Layer<Dtype>* layer, const vector<Blob<Dtype>*>& bottom,
                           const vector<Blob<Dtype>*>& top, int check_bottom, int top_id,
                           int top_data_id, bool element_wise = false) {
    vector<Blob<Dtype>*> checked;
    for (size_t i = 0; i < layer->blobs().size(); ++i) {
      Blob<Dtype>* const param = layer->blobs()[i].get();
      caffe_set(param->count(), Dtype(0), param->mutable_cpu_diff());
      checked.push_back(param);
    }
    vector<bool> propagate_down(bottom.size(), check_bottom == -1);
    for (int i = 0; i < static_cast<int>(bottom.size()); ++i) {
      if (check_bottom == i) propagate_down[i] = true;
      if (propagate_down[i]) checked.push_back(bottom[i]);
    }
    ASSERT_GT(checked.size(), 0u) << "nothing to check";

    Evaluate(layer, bottom, top, top_id, top_data_id);
    layer->Backward(top, propagate_down, bottom);
    vector<vector<Dtype>> gradients;
    for (size_t i = 0; i < checked.size(); ++i) {
      const Dtype* const diff = checked[i]->cpu_diff();
      gradients.push_back(vector<Dtype>(diff, diff + checked[i]->count()));
    }
    for (size_t i = 0; i < checked.size(); ++i) {
      for (int j = 0; j < checked[i]->count(); ++j) {
        Dtype estimate = 0;
        if (!element_wise || j == top_data_id) {
          estimate = Difference(layer, bottom, top, top_id, top_data_id, checked[i], j);
        }
        Compare(gradients[i][j], estimate, checked[i]->cpu_data()[j], i, j);
      }
    }
  }

 protected:
  // Returns the objective and writes its gradient to the diffs of the tops.
  Dtype GetObjAndGradient(const Layer<Dtype>&, const vector<Blob<Dtype>*>& top, int top_id = -1,
                          int top_data_id = -1) {
    Dtype objective = 0;
    for (size_t i = 0; i < top.size(); ++i) {
      const Dtype* const data = top[i]->cpu_data();
      Dtype* const diff = top[i]->mutable_cpu_diff();
      for (int j = 0; j < top[i]->count(); ++j) {
        if (top_id < 0) {
          objective += data[j] * data[j] / 2;
          diff[j] = data[j];
        } else {
          const bool is_it = static_cast<int>(i) == top_id && j == top_data_id;
          if (is_it) objective = data[j] * kWeight;
          diff[j] = is_it ? kWeight : Dtype(0);
        }
      }
    }
    return objective;
  }

  Dtype stepsize_;
  Dtype threshold_;
  unsigned int seed_;
  Dtype kink_;
  Dtype kink_range_;

 private:
  // Weight of a single element that is the objective.
  static constexpr Dtype kWeight = 2;

  Dtype Evaluate(Layer<Dtype>* layer, const vector<Blob<Dtype>*>& bottom,
                 const vector<Blob<Dtype>*>& top, int top_id, int top_data_id) {
    Caffe::set_random_seed(seed_);
    layer->Forward(bottom, top);
    return GetObjAndGradient(*layer, top, top_id, top_data_id);
  }

  Dtype Difference(Layer<Dtype>* layer, const vector<Blob<Dtype>*>& bottom,
                   const vector<Blob<Dtype>*>& top, int top_id, int top_data_id, Blob<Dtype>* of,
                   int j) {
    const Dtype value = of->cpu_data()[j];
    of->mutable_cpu_data()[j] = value + stepsize_;
    const Dtype above = Evaluate(layer, bottom, top, top_id, top_data_id);
    of->mutable_cpu_data()[j] = value - stepsize_;
    const Dtype below = Evaluate(layer, bottom, top, top_id, top_data_id);
    of->mutable_cpu_data()[j] = value;
    return (above - below) / (2 * stepsize_);
  }

  void Compare(Dtype computed, Dtype estimate, Dtype feature, size_t blob, int j) {
    const Dtype from_kink = std::fabs(feature - kink_);
    if (from_kink <= kink_range_) return;
    const Dtype scale = std::max(std::max(std::fabs(computed), std::fabs(estimate)), Dtype(1));
    EXPECT_NEAR(computed, estimate, threshold_ * scale)
        << "blob " << blob << ", element " << j << ", where the feature is " << feature;
  }
};

CAFFE_BVLC_END
