#include <memory>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Writes its bottoms as datasets "data" and "label" of one file. The file holds one batch: a second
// forward pass is an error, because it would overwrite the first.
class HDF5OutputLayer final : public Layer {
 public:
  explicit HDF5OutputLayer(const LayerParameter& param) : Layer(param) {
    Require(!param.hdf5_output_param().file_name().empty(),
            "hdf5_output_param { file_name } is missing");
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 2, .num_tops = 0, .has_backward = false};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    for (const Shape& bottom : bottoms) {
      Require(bottom.num_axes() >= 1, "a bottom is a single number; both must have items");
    }
    Require(bottoms[0][0] == bottoms[1][0], "the bottoms have shapes ", bottoms[0], " and ",
            bottoms[1], "; they must have as many items");
    return {};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(
        ops::HostCall{
            .what = "write HDF5",
            .call = [file = param().hdf5_output_param().file_name(), is_written = is_written_](
                        const KernelContext& ctx) { Write(file, *is_written, ctx); },
            .rounded_inputs = {0}},
        {graph.bottom(0), graph.bottom(1)}, {});
  }

 private:
  static void Write(const std::string& file, bool& is_written, const KernelContext& ctx) {
    if (is_written) {
      throw Unsupported(StrCat(file,
                               " holds one batch already; run one iteration, with a batch_size "
                               "that covers all items"));
    }
    Hdf5Writer writer(file);
    for (const auto& [input, name] : {std::pair(0, "data"), std::pair(1, "label")}) {
      const TensorView& view = ctx.input(input);
      if (view.dtype == DType::kDouble) {
        writer.WriteDoubles(name, view.shape, {view.as<const double>(), size_t(view.count())});
        continue;
      }
      std::vector<float> values(view.count());
      CopyTensor(view, {{view.shape, DType::kFloat, Layout::kPlain}, values.data()});
      writer.WriteFloats(name, view.shape, values);
    }
    writer.Commit();
    is_written = true;
  }

  // Outlives the plan, because shapes may change between two passes.
  const std::shared_ptr<bool> is_written_ = std::make_shared<bool>(false);
};

REGISTER_LAYER_CLASS(HDF5Output);

}  // namespace
}  // namespace caffe
