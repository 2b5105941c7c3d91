// Augments the images of another loader.
#pragma once

#include <memory>
#include <vector>

#include "caffe/data/record_loader.hpp"
#include "caffe/data/transformers/augmentation.hpp"

namespace caffe::data {

class AugmentingLoader final : public RecordLoader {
 public:
  using Steps = std::vector<std::unique_ptr<Augmentation>>;

  // `steps` must outlive the loader and may be shared by several loaders.
  AugmentingLoader(std::unique_ptr<RecordLoader> loader, const Steps& steps, RandomStream random)
      : loader_(std::move(loader)), steps_(steps), random_(random) {}

  void LoadAhead(std::span<const std::string_view> values) override { loader_->LoadAhead(values); }
  Sample Load(std::string_view value, uint64_t draw) override;
  ImageExtents ReadExtents(std::string_view value, uint64_t draw) override {
    return Load(value, draw).image.extents;
  }
  bool IsEncoded(std::string_view value) override { return loader_->IsEncoded(value); }
  int CountLabelNumbers(std::string_view value) override {
    return loader_->CountLabelNumbers(value);
  }

 private:
  std::unique_ptr<RecordLoader> loader_;
  const Steps& steps_;
  const RandomStream random_;
  Picture picture_;
};

}  // namespace caffe::data
