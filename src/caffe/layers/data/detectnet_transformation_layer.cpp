#include "caffe/core/philox.hpp"
#include "caffe/data/transformers/detectnet_transformer.hpp"
#include "caffe/data/transformers/single_label.hpp"
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/data/store_batch.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Augmented images for DetectNet (NVIDIA DIGITS 4) and its target grid of objects.
//
// Bottoms: images (N, 3, h, w), BGR, 0 to 255; labels (N, 1, rows, 16). Tops: images (N, 3,
// image_size_y, image_size_x), grid (N, 8 + classes, image_size_y / stride, image_size_x / stride).
// See data/transformers/detectnet_transformer.hpp for the contents of labels and grid.
class DetectNetTransformationLayer final : public Layer {
 public:
  explicit DetectNetTransformationLayer(const LayerParameter& param)
      : Layer(param),
        transformer_(param.detectnet_groundtruth_param(), param.detectnet_augmentation_param(),
                     {param.transform_param().mean_value().begin(),
                      param.transform_param().mean_value().end()}) {
    data::RefuseSingleLabelAugmentation(
        param.transform_param(), "objects would not follow; use detectnet_augmentation_param");
    if (param.transform_param().has_mean_file()) {
      throw Unsupported("transform_param { mean_file } is not available here; give mean_value");
    }
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 2, .num_tops = 2, .has_backward = false};
  }

  void Prepare(const DataPlace& place) override { seed_ = place.seed; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &images = bottoms[0], &labels = bottoms[1];
    Require(images.num_axes() == 4 && images[1] == 3, "bottom 0 has shape ", images,
            "; it must be images of 3 channels");
    Require(labels.num_axes() == 4 && labels[0] == images[0] && labels[1] == 1 && labels[2] >= 1 &&
                labels[3] == data::DetectNetTransformer::kRowLength,
            "bottom 1 has shape ", labels, "; it must be labels of shape (", images[0],
            ", 1, rows, ", data::DetectNetTransformer::kRowLength, ")");
    return {{images[0], 3, transformer_.height(), transformer_.width()},
            {images[0], transformer_.grid_channels(), transformer_.grid_height(),
             transformer_.grid_width()}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::HostCall{.what = "DetectNet's images and grid",
                             .call = [this](const KernelContext& ctx) { Run(ctx); },
                             .rounded_inputs = {0},
                             .rounds_results = true},
               {graph.bottom(0), graph.bottom(1)}, {graph.top(0), graph.top(1)});
  }

 private:
  static std::vector<float> Values(const TensorView& view) {
    std::vector<float> values(view.count());
    CopyTensor(view, {{view.shape, DType::kFloat, Layout::kPlain}, values.data()});
    return values;
  }

  void Run(const KernelContext& ctx) const {
    const std::vector<float> images = Values(ctx.input(0)), labels = Values(ctx.input(1));
    const Shape &image = ctx.input(0).shape, &label = ctx.input(1).shape;
    const Shape &out = ctx.output(0).shape, &grid = ctx.output(1).shape;
    std::vector<float> out_values(out.count()), grid_values(grid.count());
    const RandomStream stream(seed_, StreamOf(name()));
    for (int64_t item = 0; item < image[0]; ++item) {
      WithContext(StrCat("item ", item, " of the batch"), [&] {
        transformer_.Transform(
            &images[item * image.count(1)], static_cast<int>(image[2]), static_cast<int>(image[3]),
            &labels[item * label.count(1)], static_cast<int>(label[2]),
            param().phase() == TRAIN ? &stream : nullptr, ctx.random.pass * image[0] + item,
            &out_values[item * out.count(1)], &grid_values[item * grid.count(1)]);
      });
    }
    StoreBatch(out_values.data(), ctx.output(0));
    StoreBatch(grid_values.data(), ctx.output(1));
  }

  const data::DetectNetTransformer transformer_;
  uint64_t seed_ = 0;
};

REGISTER_LAYER_CLASS(DetectNetTransformation, "detectnet_groundtruth_param",
                     "detectnet_augmentation_param", "transform_param");

}  // namespace
}  // namespace caffe
