// With batches of one item, images may differ in size: the net adapts.
#include <gtest/gtest.h>

#include <fstream>

#include "caffe/blob.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

TEST(VaryingImagesTest, EachImageHasItsOwnShape) {
  const testing::TemporaryFolder folder;
  std::ofstream list(folder.path("list.txt"));
  const std::vector<std::pair<int, int>> sizes = {{6, 4}, {6, 4}, {3, 9}, {8, 8}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto [height, width] = sizes[i];
    const data::Image image{{1, height, width},
                            std::vector<uint8_t>(height * width, static_cast<uint8_t>(i + 1))};
    std::ofstream(folder.path(StrCat(i, ".png"))) << data::EncodeImage(image, "png");
    list << i << ".png " << i << "\n";
  }
  list.close();
  NetParameter param;
  ParseTextProto(StrCat("layer { name: 'data' type: 'ImageData' top: 'data' top: 'label' "
                        "image_data_param { is_color: false source: '",
                        folder.path("list.txt"), "' root_folder: '", folder.path(""),
                        "' } } "
                        "layer { name: 'pool' type: 'Pooling' bottom: 'data' top: 'mean' "
                        "pooling_param { pool: AVE global_pooling: true } }"),
                 "varying", &param);
  for (const bool keep_all : {true, false}) {
    Net net(param, {.keep_all = keep_all});
    for (size_t i = 0; i < 2 * sizes.size(); ++i) {
      net.Forward();
      const auto [height, width] = sizes[i % sizes.size()];
      EXPECT_EQ(net.blob_by_name("data")->shape(), (Shape{1, 1, height, width}));
      EXPECT_FLOAT_EQ(net.blob_by_name("mean")->cpu_data<float>()[0],
                      static_cast<float>(i % sizes.size() + 1));
    }
  }
}

}  // namespace
}  // namespace caffe
