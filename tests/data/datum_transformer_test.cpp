#include "caffe/data/transformers/datum_transformer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/data/databases.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;

DatumTransformer Make(const std::string& text, bool train = true, uint64_t seed = 1) {
  TransformationParameter param;
  ParseTextProto(text, "transform_param", &param);
  return DatumTransformer(param, train, seed, "data/transform");
}

std::vector<float> Apply(const DatumTransformer& transformer, const ImageView& image,
                         uint64_t draw) {
  std::vector<float> out(transformer.OutputExtents(image.extents).count());
  transformer.Transform(image, draw, out.data());
  return out;
}

// An image whose pixel at (c, h, w) is 100 c + 10 h + w, planar or interleaved.
struct TestImage {
  TestImage(int channels, int height, int width, bool interleaved) {
    view = {{channels, height, width}, nullptr, nullptr, interleaved};
    bytes.resize(view.extents.count());
    for (int c = 0; c < channels; ++c) {
      for (int h = 0; h < height; ++h) {
        for (int w = 0; w < width; ++w) {
          const int place =
              interleaved ? (h * width + w) * channels + c : (c * height + h) * width + w;
          bytes[place] = static_cast<uint8_t>(100 * c + 10 * h + w);
        }
      }
    }
    view.bytes = bytes.data();
  }
  std::vector<uint8_t> bytes;
  ImageView view;
};

TEST(DatumTransformerTest, ASmallImageMayBeAllowedToGrow) {
  const auto error = [](const std::string& options) {
    return ErrorText<InvalidArgument>([&] {
      Make("crop_size: 8 " + options).OutputExtents({3, 6, 9});
    });
  };
  EXPECT_THAT(error(""), HasSubstr("larger than the image (6x9); lower it or resize the images"));
  const std::string resizes = "img_rand_resize_lower: 8 img_rand_resize_upper: 9 ";
  EXPECT_THAT(error(resizes),
              HasSubstr("(6x9); set allow_upscale: true, or lower it or resize the images"));
  EXPECT_THAT(error(resizes + "allow_upscale: true"), HasSubstr("(6x9); lower it"));
}

TEST(DatumTransformerTest, SubtractsMeanThenScales) {
  const TestImage image(2, 1, 2, false);
  EXPECT_THAT(Apply(Make("mean_value: 1 mean_value: 90 scale: 0.5"), image.view, 0),
              ElementsAre(-0.5, 0, 5, 5.5));
}

// This holds for any size after resizing and any position of the window.
TEST(DatumTransformerTest, SubtractsTheMeansCentreFromImagesResizedAtRandom) {
  const testing::TemporaryFolder folder;
  BlobProto mean;
  for (const int extent : {1, 2, 5, 4}) mean.mutable_shape()->add_dim(extent);
  for (int i = 0; i < 40; ++i) mean.add_data(static_cast<float>(i));
  WriteBinaryProto(folder.path("mean"), mean);
  const std::string resizing =
      "img_rand_resize_lower: 3 img_rand_resize_upper: 9 mean_file: '" + folder.path("mean") + "'";
  // Rows 1 to 3 and columns 0 to 2 of the mean's 5x4 pixels.
  const std::vector<float> centre = {4,  5,  6,  8,  9,  10, 12, 13, 14,
                                     24, 25, 26, 28, 29, 30, 32, 33, 34};
  for (const bool interleaved : {false, true}) {
    for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
      SCOPED_TRACE(::testing::Message() << interleaved << static_cast<int>(layout));
      for (const auto& [height, width] : {std::pair{3, 3}, {7, 6}}) {
        const TestImage image(2, height, width, interleaved);
        std::vector<float> with(18), without(18);
        Make(resizing + " crop_size: 3").Transform(image.view, 5, with.data(), layout);
        Make("crop_size: 3").Transform(image.view, 5, without.data(), layout);
        for (int i = 0; i < 18; ++i) {
          const int place = layout == Layout::kPlain ? i : i % 2 * 9 + i / 2;
          EXPECT_EQ(without[i] - with[i], centre[place]) << i;
        }
      }
    }
  }
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Make(resizing); }), HasSubstr("add crop_size"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Make(resizing + " crop_size: 6"); }),
              HasSubstr("2x5x4, smaller than the crop of 6x6"));
}

TEST(DatumTransformerTest, CropsTheCentreInTesting) {
  const TestImage image(1, 5, 6, false);
  EXPECT_THAT(Apply(Make("crop_size: 2", /*train=*/false), image.view, 0),
              ElementsAre(12, 13, 22, 23));
}

TEST(DatumTransformerTest, MirrorsTheCroppedWindow) {
  const TestImage image(1, 2, 2, false);
  const DatumTransformer transformer = Make("mirror: true");
  std::set<std::vector<float>> seen;
  for (uint64_t draw = 0; draw < 20; ++draw) seen.insert(Apply(transformer, image.view, draw));
  EXPECT_THAT(seen,
              ElementsAre(std::vector<float>{0, 1, 10, 11}, std::vector<float>{1, 0, 11, 10}));
}

// An image that is its own mean becomes 0, wherever it is cropped and whether it is mirrored.
TEST(DatumTransformerTest, ReadsTheMeanWhereThePixelWas) {
  const testing::TemporaryFolder folder;
  for (const bool interleaved : {false, true}) {
    const TestImage image(3, 7, 9, interleaved), planes(3, 7, 9, false);
    BlobProto mean;
    for (const int extent : {1, 3, 7, 9}) mean.mutable_shape()->add_dim(extent);
    for (const uint8_t byte : planes.bytes) mean.add_data(byte);
    WriteBinaryProto(folder.path("mean"), mean);
    const std::string options = "mirror: true mean_file: '" + folder.path("mean") + "'";
    // The last option subtracts the mean's centre from the window.
    for (const char* cut : {"", " crop_size: 4", " crop_h: 7 crop_w: 9 img_rand_resize_lower: 7"}) {
      const DatumTransformer transformer = Make(options + cut);
      for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
        for (uint64_t draw = 0; draw < 30; ++draw) {
          std::vector<float> out(transformer.OutputExtents(image.view.extents).count(), 1);
          transformer.Transform(image.view, draw, out.data(), layout);
          EXPECT_THAT(out, ::testing::Each(0)) << cut << " " << interleaved << " " << draw;
        }
      }
    }
  }
}

TEST(DatumTransformerTest, RandomCropsReachEveryPlaceAndRepeatWithTheSeed) {
  const TestImage image(1, 4, 5, false);
  const DatumTransformer transformer = Make("crop_size: 3");
  std::set<float> corners;
  for (uint64_t draw = 0; draw < 200; ++draw) {
    const std::vector<float> values = Apply(transformer, image.view, draw);
    corners.insert(values[0]);
    EXPECT_EQ(values, Apply(Make("crop_size: 3"), image.view, draw));
  }
  EXPECT_THAT(corners, ElementsAre(0, 1, 2, 10, 11, 12));
}

// Rows longer than a vector and than the splitting buffer, so that the end of every loop is
// reached.
TEST(DatumTransformerTest, PlanarInterleavedAndFloatImagesGiveTheSame) {
  for (const int width : {5, 67, 1100}) {
    const TestImage planar(3, 3, width, false), interleaved(3, 3, width, true);
    std::vector<float> floats(planar.bytes.begin(), planar.bytes.end());
    const ImageView float_view{planar.view.extents, nullptr, floats.data(), false};
    const DatumTransformer transformer =
        Make("mirror: true mean_value: 1 mean_value: 2 mean_value: 3 scale: 2");
    for (uint64_t draw = 0; draw < 4; ++draw) {
      const std::vector<float> expected = Apply(transformer, planar.view, draw);
      EXPECT_EQ(Apply(transformer, interleaved.view, draw), expected);
      EXPECT_EQ(Apply(transformer, float_view, draw), expected);
    }
  }
}

TEST(DatumTransformerTest, WrongOptionsAreNamed) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Make("force_color: true force_gray: true"); }),
              HasSubstr("both force_color and force_gray"));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Make("mean_file: 'm' mean_value: 1"); }),
              HasSubstr("both mean_file and mean_value"));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Make("crop_h: 3"); }),
              HasSubstr("crop_h is 3 and crop_w 0"));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Make("crop_size: 9").OutputShape(3, 8, 10); }),
              AllOf(HasSubstr("crop_size 9"), HasSubstr("8x10")));
  EXPECT_THAT(
      ErrorText<InvalidArgument>([] { Make("mean_value: 1 mean_value: 2").OutputShape(3, 8, 10); }),
      AllOf(HasSubstr("2 mean_value"), HasSubstr("3 channels")));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { Make("mean_value: 1 mean_value: 2").Mean(3); }),
              AllOf(HasSubstr("2 mean_value"), HasSubstr("3 channels")));
}

}  // namespace
}  // namespace caffe::data
