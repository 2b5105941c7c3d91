#include <algorithm>
#include <memory>

#include "caffe/core/philox.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/filler.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Tops filled by fillers: constant ones by a Fill op, others again in each forward pass.
class DummyDataLayer final : public Layer {
 public:
  explicit DummyDataLayer(const LayerParameter& param)
      : Layer(param), options_(param.dummy_data_param()) {
    const int num_tops = param.top_size();
    RequireNoneOneOrEach("data_filler", options_.data_filler_size(), num_tops);
    if (options_.shape_size() > 0) {
      Require(options_.num_size() == 0, "has both shape and the old num/channels/height/width");
      RequireNoneOneOrEach("shape", options_.shape_size(), num_tops);
      return;
    }
    for (const int size : {options_.num_size(), options_.channels_size(), options_.height_size(),
                           options_.width_size()}) {
      Require(size == 1 || size == num_tops,
              "needs shape, or num, channels, height and width, once or "
              "once per top (",
              num_tops, ")");
    }
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 0, .min_tops = 1, .is_data = true, .has_backward = false};
  }

  void Prepare(const DataPlace& place) override { seed_ = place.seed; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>&) const override {
    std::vector<Shape> tops;
    for (int i = 0; i < param().top_size(); ++i) tops.push_back(TopShape(i));
    return tops;
  }

  void EmitForward(GraphBuilder& graph) const override {
    for (int i = 0; i < graph.num_tops(); ++i) {
      const FillerParameter filler = Filler(i);
      if (filler.type() == "constant") {
        graph.Emit(ops::Fill{filler.value()}, {}, {graph.top(i)});
        continue;
      }
      const RandomStream random(seed_, StreamOf(StrCat(name(), "/", i)));
      auto values = std::make_shared<std::vector<float>>(TopShape(i).count());
      graph.Emit(ops::HostCall{.what = "fill " + filler.type(),
                               .call =
                                   [=](const KernelContext& ctx) {
                                     const TensorView& y = ctx.output(0);
                                     Fill(filler, y.shape, random, ctx.random.pass, *values);
                                     VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
                                       std::transform(values->begin(), values->end(), y.as<T>(),
                                                      [](float value) { return T(value); });
                                     });
                                   },
                               .is_source = true},
                 {}, {graph.top(i)});
    }
  }

 private:
  static void RequireNoneOneOrEach(const char* field, int size, int num_tops) {
    Require(size <= 1 || size == num_tops, field, " is given ", size, " times for ", num_tops,
            " tops; give none, one, or one each");
  }

  template <typename Field>
  static auto Of(const Field& field, int top) {
    return field.Get(field.size() == 1 ? 0 : top);
  }

  Shape TopShape(int top) const {
    if (options_.shape_size() > 0) {
      const BlobShape shape = Of(options_.shape(), top);
      return Shape(std::vector<int64_t>(shape.dim().begin(), shape.dim().end()));
    }
    return {Of(options_.num(), top), Of(options_.channels(), top), Of(options_.height(), top),
            Of(options_.width(), top)};
  }

  FillerParameter Filler(int top) const {
    return options_.data_filler_size() == 0 ? FillerParameter() : Of(options_.data_filler(), top);
  }

  const DummyDataParameter options_;
  uint64_t seed_ = 0;
};

REGISTER_LAYER_CLASS(DummyData);

}  // namespace
}  // namespace caffe
