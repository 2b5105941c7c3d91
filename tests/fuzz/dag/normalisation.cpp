#include "tests/fuzz/dag/normalisation.hpp"

#include <cmath>

namespace caffe::fuzz {

std::optional<Normalisation> Normalisation::Of(const Layer& layer, const Shape& bottom) {
  const LayerParameter& param = layer.param();
  const bool is_test = layer.phase() == TEST;
  Normalisation one;
  // Rows that are contiguous from this axis on, or all items' planes of a channel.
  const auto rows_from = [&](int axis) {
    one.groups_ = bottom.count(0, axis);
    one.run_ = one.group_stride_ = bottom.count(axis);
    return one;
  };
  const auto channels = [&] {
    const bool has_channels = bottom.num_axes() > 1;
    one.groups_ = has_channels ? bottom[1] : 1;
    one.runs_ = has_channels ? bottom[0] : 1;
    one.run_ = one.group_stride_ = has_channels ? bottom.count(2) : bottom[0];
    one.stride_ = has_channels ? bottom.count(1) : 0;
    return one;
  };
  if (layer.type() == "BatchNorm") {
    const BatchNormParameter& options = param.batch_norm_param();
    const bool is_given = options.has_use_global_stats() && !options.scale_bias()
                              ? options.use_global_stats()
                              : is_test;
    one.eps_ = options.eps();
    return is_given ? std::nullopt : std::optional(channels());
  }
  if (layer.type() == "BN") {
    one.eps_ = param.bn_param().eps();
    return is_test || param.bn_param().frozen() ? std::nullopt : std::optional(channels());
  }
  if (layer.type() == "LayerNorm") {
    const int axis = param.layer_norm_param().axis();
    one.eps_ = param.layer_norm_param().eps();
    return rows_from(axis < 0 ? axis + bottom.num_axes() : axis);
  }
  if (layer.type() == "GroupNorm" || layer.type() == "InstanceNorm") {
    const GroupNormParameter& options = param.group_norm_param();
    const int64_t groups = layer.type() == "GroupNorm" ? options.num_groups() : bottom[1];
    one.eps_ = options.eps();
    one.groups_ = bottom[0] * groups;
    one.run_ = one.group_stride_ = bottom.count(1) / groups;
    return one;
  }
  if (layer.type() == "RMSNorm") {
    one.eps_ = param.rms_norm_param().eps();
    one.subtracts_ = false;
    return rows_from(bottom.CanonicalAxis(param.rms_norm_param().axis()));
  }
  if (layer.type() == "MVN") {
    one.eps_ = param.mvn_param().eps();
    one.eps_in_root_ = false;
    one.divides_ = param.mvn_param().normalize_variance();
    return rows_from(param.mvn_param().across_channels() ? 1 : 2);
  }
  return std::nullopt;
}

template <typename Fn>
void Normalisation::ForEach(int64_t group, const Fn& fn) const {
  for (int64_t run = 0; run < runs_; ++run) {
    const int64_t begin = group * group_stride_ + run * stride_;
    for (int64_t i = begin; i < begin + run_; ++i) fn(i);
  }
}

Normalisation::Group Normalisation::GroupAt(const double* bottom, int64_t group) const {
  double sum = 0, squares = 0;
  const auto count = static_cast<double>(runs_ * run_);
  ForEach(group, [&](int64_t i) { sum += bottom[i]; });
  const double mean = subtracts_ ? sum / count : 0;
  ForEach(group, [&](int64_t i) { squares += (bottom[i] - mean) * (bottom[i] - mean); });
  const double variance = squares / count;
  if (!divides_) return {mean, 1};
  return {mean, eps_in_root_ ? std::sqrt(variance + eps_) : std::sqrt(variance) + eps_};
}

// The mean's error is the same for a whole group, and adds up in a sum over the group.
void Normalisation::AddToTop(const double* bottom, double noise, RandomNumbers& random,
                             double* top) const {
  for (int64_t group = 0; group < groups_; ++group) {
    const auto [mean, deviation] = GroupAt(bottom, group);
    const double common = random.Uniform() * mean;
    ForEach(group, [&](int64_t i) {
      top[i] += noise * (common + random.Uniform() * bottom[i]) / deviation;
    });
  }
}

// (dy - mean(dy) - y mean(y dy)) / deviation.
void Normalisation::AddToBottomDiff(const double* bottom, const double* top_diff, double noise,
                                    RandomNumbers& random, double* bottom_diff) const {
  const auto count = static_cast<double>(runs_ * run_);
  for (int64_t group = 0; group < groups_; ++group) {
    const auto [mean, deviation] = GroupAt(bottom, group);
    double size = 0, size_of_product = 0;
    const auto top = [&, mean = mean, deviation = deviation](int64_t i) {
      return (bottom[i] - mean) / deviation;
    };
    ForEach(group, [&](int64_t i) {
      size += std::abs(top_diff[i]) / count;
      size_of_product += std::abs(top(i) * top_diff[i]) / count;
    });
    const double common = random.Uniform() * size;
    const double of_product = random.Uniform() * size_of_product;
    ForEach(group, [&](int64_t i) {
      bottom_diff[i] +=
          noise * (common + top(i) * of_product + random.Uniform() * top_diff[i]) / deviation;
    });
  }
}

}  // namespace caffe::fuzz
