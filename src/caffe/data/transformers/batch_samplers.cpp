#include <algorithm>
#include <cmath>

#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/data/transformers/boxes_in_window.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// True if a single object satisfies all given bounds.
bool Satisfies(const SampleConstraint& constraint, const ObjectBox& sample,
               const std::vector<ObjectBox>& objects) {
  const bool has_jaccard =
      constraint.has_min_jaccard_overlap() || constraint.has_max_jaccard_overlap();
  const bool has_sample =
      constraint.has_min_sample_coverage() || constraint.has_max_sample_coverage();
  const bool has_object =
      constraint.has_min_object_coverage() || constraint.has_max_object_coverage();
  if (!has_jaccard && !has_sample && !has_object) return true;
  const auto is_within = [](float value, bool has_min, float min, bool has_max, float max) {
    return (!has_min || value >= min) && (!has_max || value <= max);
  };
  return std::any_of(objects.begin(), objects.end(), [&](const ObjectBox& object) {
    const float overlap = OverlapOf(sample, object);
    const auto share = [&](float area) { return area > 0 ? overlap / area : 0; };
    return is_within(share(sample.area() + object.area() - overlap),
                     constraint.has_min_jaccard_overlap(), constraint.min_jaccard_overlap(),
                     constraint.has_max_jaccard_overlap(), constraint.max_jaccard_overlap()) &&
           is_within(share(sample.area()), constraint.has_min_sample_coverage(),
                     constraint.min_sample_coverage(), constraint.has_max_sample_coverage(),
                     constraint.max_sample_coverage()) &&
           is_within(share(object.area()), constraint.has_min_object_coverage(),
                     constraint.min_object_coverage(), constraint.has_max_object_coverage(),
                     constraint.max_object_coverage());
  });
}

class BatchSamplers final : public Augmentation {
 public:
  BatchSamplers(const AnnotatedDataParameter& annotated, const TransformationParameter& param)
      : samplers_(annotated.batch_sampler().begin(), annotated.batch_sampler().end()),
        param_(param) {
    for (const BatchSampler& batch_sampler : samplers_) {
      const Sampler& sampler = batch_sampler.sampler();
      Require(0 < sampler.min_scale() && sampler.min_scale() <= sampler.max_scale() &&
                  sampler.max_scale() <= 1,
              "batch_sampler: min_scale is ", sampler.min_scale(), " and max_scale ",
              sampler.max_scale(), "; give 0 < min_scale <= max_scale <= 1");
      Require(0 < sampler.min_aspect_ratio() && sampler.min_aspect_ratio() <= 1 &&
                  1 <= sampler.max_aspect_ratio(),
              "batch_sampler: min_aspect_ratio is ", sampler.min_aspect_ratio(),
              " and max_aspect_ratio ", sampler.max_aspect_ratio(),
              "; give 0 < min_aspect_ratio <= 1 <= max_aspect_ratio");
    }
  }

  void Apply(Draws& draws, Picture* picture) const override {
    std::vector<ObjectBox> samples;
    for (const BatchSampler& sampler : samplers_) {
      if (sampler.use_original_image()) Collect(sampler, draws, picture->boxes, &samples);
    }
    if (samples.empty()) return;
    Cut(samples[draws.Below(static_cast<int>(samples.size()))], picture);
  }

 private:
  static ObjectBox DrawSample(const Sampler& sampler, Draws& draws) {
    const float scale = draws.Uniform(sampler.min_scale(), sampler.max_scale());
    const float low = std::max(sampler.min_aspect_ratio(), scale * scale);
    const float high = std::min(sampler.max_aspect_ratio(), 1 / (scale * scale));
    const float root = std::sqrt(draws.Uniform(low, high));
    const float width = std::min(scale * root, 1.0f), height = std::min(scale / root, 1.0f);
    ObjectBox sample;
    sample.xmin = draws.Uniform(0, 1 - width), sample.xmax = sample.xmin + width;
    sample.ymin = draws.Uniform(0, 1 - height), sample.ymax = sample.ymin + height;
    return sample;
  }

  static void Collect(const BatchSampler& sampler, Draws& draws,
                      const std::vector<ObjectBox>& objects, std::vector<ObjectBox>* samples) {
    uint32_t found = 0;
    for (uint32_t trial = 0; trial < sampler.max_trials(); ++trial) {
      if (sampler.has_max_sample() && found >= sampler.max_sample()) return;
      const ObjectBox sample = DrawSample(sampler.sampler(), draws);
      if (!Satisfies(sampler.sample_constraint(), sample, objects)) continue;
      samples->push_back(sample);
      ++found;
    }
  }

  void Cut(const ObjectBox& sample, Picture* picture) const {
    const auto pixel = [](float part, int size) {
      return std::clamp(static_cast<int>(part * static_cast<float>(size)), 0, size);
    };
    const int left = pixel(sample.xmin, picture->image.cols);
    const int top = pixel(sample.ymin, picture->image.rows);
    const int right = std::max(pixel(sample.xmax, picture->image.cols), left + 1);
    const int bottom = std::max(pixel(sample.ymax, picture->image.rows), top + 1);
    const cv::Rect cut = cv::Rect(left, top, right - left, bottom - top) &
                         cv::Rect(0, 0, picture->image.cols, picture->image.rows);
    if (cut.empty()) return;
    picture->image = picture->image(cut).clone();
    picture->boxes = BoxesInWindow(param_, sample, picture->boxes);
  }

  const std::vector<BatchSampler> samplers_;
  const TransformationParameter param_;
};

}  // namespace

std::unique_ptr<Augmentation> MakeBatchSamplers(const AnnotatedDataParameter& annotated,
                                                const TransformationParameter& param) {
  if (annotated.batch_sampler_size() == 0) return nullptr;
  return std::make_unique<BatchSamplers>(annotated, param);
}

}  // namespace caffe::data
