// A net that is trained on label images, as in SegNet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "caffe/blob.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;
using testing::NetOf;

TEST(DenseImageDataTest, FeedsALossOfEachPixel) {
  const testing::TemporaryFolder folder;
  // A batch of one may contain images of different sizes.
  for (const int width : {3, 4}) {
    std::vector<uint8_t> labels(2 * width, 1);
    labels[0] = 2;
    const std::string name = std::to_string(width);
    std::ofstream(folder.path(name + ".png"))
        << data::EncodeImage({{3, 2, width}, std::vector<uint8_t>(6 * width, 7)}, "png");
    std::ofstream(folder.path(name + "_labels.png"))
        << data::EncodeImage({{1, 2, width}, labels}, "png");
    std::ofstream(folder.path("list.txt"), std::ios::app)
        << folder.path(name + ".png") << " " << folder.path(name + "_labels.png") << "\n";
  }
  const auto net = NetOf(
      "state { phase: TRAIN } layer { name: 'd' type: 'DenseImageData' top: 'data' top: 'label' "
      "dense_image_data_param { source: '" +
      folder.path("list.txt") +
      "' batch_size: 1 } } layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' "
      "convolution_param { num_output: 3 kernel_size: 1 } } layer { name: 'l' type: "
      "'SoftmaxWithLoss' bottom: 'c' bottom: 'label' top: 'loss' }");
  for (const int width : {3, 4, 3}) {
    net->Forward();
    const Blob& label = *net->blob_by_name("label");
    EXPECT_EQ(net->blob_by_name("data")->shape(), (Shape{1, 3, 2, width}));
    EXPECT_EQ(label.shape(), (Shape{1, 1, 2, width}));
    EXPECT_EQ(label.cpu_data<float>()[0], 2);
    EXPECT_EQ(label.cpu_data<float>()[1], 1);
    EXPECT_NEAR(net->blob_by_name("loss")->cpu_data<float>()[0], std::log(3.0), 1e-5);
  }
}

TEST(DenseImageDataTest, NeedsASource) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] {
                NetOf("layer { name: 'd' type: 'DenseImageData' top: 'data' top: 'label' }");
              }),
              HasSubstr("source } is missing"));
}

}  // namespace
}  // namespace caffe
