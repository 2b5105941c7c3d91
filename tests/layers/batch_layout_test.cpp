// Data layers give their images in the layout that the plan uses for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/graph_builder.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

class BatchLayoutTest : public ::testing::Test {
 protected:
  // Two images of 2x3 pixels, and a layer that gives both in each batch.
  BatchLayoutTest() {
    std::ofstream list(folder_.path("list.txt"));
    for (int i = 0; i < 2; ++i) {
      data::Image image{{3, 2, 3}, std::vector<uint8_t>(18)};
      for (int k = 0; k < 18; ++k) image.pixels[k] = static_cast<uint8_t>(100 * i + k);
      std::ofstream(folder_.path(StrCat(i, ".png"))) << data::EncodeImage(image, "png");
      list << i << ".png " << i << "\n";
    }
    list.close();
    LayerParameter param;
    ParseTextProto(StrCat("name: 'data' type: 'ImageData' top: 'data' top: 'label' "
                          "image_data_param { batch_size: 2 source: '",
                          folder_.path("list.txt"), "' root_folder: '", folder_.path(""), "' }"),
                   "layer", &param);
    call_.layer = LayerRegistry::CreateLayer(param);
    call_.layer->Prepare({});
    const std::vector<Shape> tops = call_.layer->InferTopShapes({});
    for (const Shape& top : tops) {
      call_.tops.push_back(&graph_.NewValue("top", top, DType::kFloat, ValueKind::kActivation));
    }
    graph_.calls.push_back(call_);
    GraphBuilder builder(graph_, 0, /*is_backward=*/false);
    call_.layer->EmitForward(builder);
  }

  // The next images, written by the layer's host call.
  template <typename T>
  std::vector<float> Next(Layout layout, DType dtype) {
    std::vector<T> data(36);
    std::vector<float> labels(2);
    const std::vector<TensorView> outputs = {{{Shape{2, 3, 2, 3}, dtype, layout}, data.data()},
                                             {{Shape{2}}, labels.data()}};
    KernelContext context;
    context.outputs = outputs;
    graph_.ScheduledNodes().at(0)->op.As<ops::HostCall>()->call(context);
    EXPECT_EQ(labels, (std::vector<float>{0, 1}));
    return {data.begin(), data.end()};
  }

  // Pixels of the images above, whose channels are interleaved.
  static std::vector<float> Expected(Layout layout) {
    std::vector<float> values;
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < 18; ++k) {
        const int pixel = layout == Layout::kPlain ? k % 6 * 3 + k / 6 : k;
        values.push_back(static_cast<float>(100 * i + pixel));
      }
    }
    return values;
  }

  const testing::TemporaryFolder folder_;
  Graph graph_{{}};
  LayerCall call_;
};

TEST_F(BatchLayoutTest, FollowsThePlanFromBatchToBatch) {
  for (const Layout layout :
       {Layout::kPlain, Layout::kChannelsLast, Layout::kChannelsLast, Layout::kChannelsLast,
        Layout::kChannelsLast, Layout::kChannelsLast, Layout::kChannelsLast, Layout::kPlain}) {
    EXPECT_EQ(Next<float>(layout, DType::kFloat), Expected(layout)) << Name(layout);
    EXPECT_EQ(Next<double>(layout, DType::kDouble), Expected(layout)) << Name(layout);
  }
}

TEST_F(BatchLayoutTest, ABatchThatDidNotFitIsGivenInTheNewLayout) {
  float small[2];
  const std::vector<TensorView> outputs = {{{Shape{2, 1, 1, 1}}, small}, {{Shape{2}}, small}};
  KernelContext context;
  context.outputs = outputs;
  const auto& call = graph_.ScheduledNodes().at(0)->op.As<ops::HostCall>()->call;
  EXPECT_EQ(call(context), (std::vector<Shape>{Shape{2, 3, 2, 3}, Shape{2}}));
  EXPECT_EQ(call_.layer->records_delivered(), 2u);
  EXPECT_EQ(Next<float>(Layout::kChannelsLast, DType::kFloat), Expected(Layout::kChannelsLast));
  EXPECT_EQ(call_.layer->records_delivered(), 2u);
  call_.layer->RepeatBatch();
  EXPECT_EQ(Next<float>(Layout::kPlain, DType::kFloat), Expected(Layout::kPlain));
  EXPECT_EQ(call_.layer->records_delivered(), 2u);
}

}  // namespace
}  // namespace caffe
