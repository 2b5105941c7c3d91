// If no kernel of the device supports a type, the error names the layer, the op and the type, and
// the types that the kernels support.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/kernel.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

// (x) -> (y), only in float.
struct OnlyInFloat {
  static constexpr std::string_view kName = "OnlyInFloat";
};

KernelOrRefusal MakeOnlyInFloat(const OnlyInFloat&, const KernelRequest&) {
  return Kernel{"", [](const KernelContext&) {}, 0};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, OnlyInFloat, "only-in-float", KernelRank::kBest,
                              MakeOnlyInFloat, {.signatures = {{DType::kFloat, DType::kFloat}}});

class OnlyInFloatLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return bottoms;
  }
  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(OnlyInFloat{}, {graph.bottom(0)}, {graph.top(0)});
  }
};
REGISTER_LAYER_CLASS(OnlyInFloat);

std::string NetIn(const std::string& type) {
  return R"(layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 } } }
            layer { name: 'narrow' type: 'OnlyInFloat' bottom: 'x' top: 'y' forward_type: )" +
         type + " }";
}

TEST(UnservedTypesTest, TheErrorSaysLayerTypeAndWhatIsServed) {
  const std::string text = testing::ErrorText<Unsupported>([] { testing::NetOf(NetIn("DOUBLE")); });
  for (const char* part : {"layer 'narrow' (OnlyInFloat)", "no kernel for OnlyInFloat in double",
                           "only-in-float (float)"}) {
    EXPECT_THAT(text, ::testing::HasSubstr(part));
  }
}

TEST(UnservedTypesTest, NarrowerTypesAreComputedInTheNearestWiderOne) {
  EXPECT_NO_THROW(testing::NetOf(NetIn("BFLOAT16")));
  EXPECT_NO_THROW(testing::NetOf(NetIn("FLOAT16")));
}

}  // namespace
}  // namespace caffe
