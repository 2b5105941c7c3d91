// random_resized_crop, rotation, rand_augment, pad and erasing, alone and in batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/sources/image_pair_source.hpp"
#include "caffe/data/transformers/affine.hpp"
#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/data/transformers/erasing.hpp"
#include "caffe/data/transformers/random_resized_crop.hpp"
#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/data/batches.hpp"
#include "tests/data/databases.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

TransformationParameter TransformOf(const std::string& text) {
  TransformationParameter param;
  ParseTextProto(text, "test", &param);
  return param;
}

const RandomStream kRandom(1, 2);

TEST(RandomResizedCropTest, DrawsAreaRatioAndPlace) {
  RandomResizedCropParameter param;
  param.set_min_area(0.2f);
  param.set_max_area(0.6f);
  constexpr int kHeight = 300, kWidth = 400, kRecords = 2000;
  double area_sum = 0;
  int least = kWidth, wide = 0;
  for (uint64_t record = 0; record < kRecords; ++record) {
    Draws draws(kRandom, record);
    const ImagePart part = ChooseResizedCrop(param, kHeight, kWidth, draws);
    const double area = double{1} * part.height * part.width / (kHeight * kWidth);
    const double ratio = double{1} * part.width / part.height;
    area_sum += area;
    wide += ratio > 1;
    least = std::min(least, part.left);
    EXPECT_GT(area, 0.19);
    EXPECT_LT(area, 0.61);
    EXPECT_GT(ratio, 0.74);
    EXPECT_LT(ratio, 1.35);
    EXPECT_GE(part.top, 0);
    EXPECT_LE(part.top + part.height, kHeight);
    EXPECT_LE(part.left + part.width, kWidth);
  }
  EXPECT_NEAR(area_sum / kRecords, 0.4, 0.01);
  EXPECT_NEAR(wide, kRecords / 2, kRecords / 20);
  EXPECT_LT(least, 3);
}

// No part with 8 % of the area and a ratio of 4/3 fits into a strip.
TEST(RandomResizedCropTest, TakesTheCentreWhereNothingFits) {
  const auto part = [](int height, int width) {
    Draws draws(kRandom, 0);
    return ChooseResizedCrop(RandomResizedCropParameter(), height, width, draws);
  };
  EXPECT_EQ(part(10, 300), (ImagePart{0, 143, 10, 13}));
  EXPECT_EQ(part(300, 10), (ImagePart{143, 0, 13, 10}));
  EXPECT_EQ(part(1, 100), (ImagePart{0, 49, 1, 1}));
}

// The interpolated pixel of a ramp equals the ramp at its position.
TEST(RandomResizedCropTest, InterpolatesBetweenPixels) {
  cv::Mat image(50, 60, CV_8UC3);
  for (int row = 0; row < 50; ++row) {
    for (int column = 0; column < 60; ++column) {
      image.at<cv::Vec3b>(row, column) =
          cv::Vec3b(static_cast<uint8_t>(4 * row), static_cast<uint8_t>(4 * column), 9);
    }
  }
  const TransformationParameter param =
      TransformOf("random_resized_crop { min_area: 0.3 max_area: 0.5 } crop_h: 30 crop_w: 40");
  const auto step = MakeRandomResizedCrop(param);
  for (uint64_t record = 0; record < 50; ++record) {
    Draws draws(kRandom, record), same(kRandom, record);
    Picture picture{image, {}};
    step->Apply(draws, &picture);
    ASSERT_EQ(picture.image.size(), cv::Size(40, 30));
    const ImagePart part = ChooseResizedCrop(param.random_resized_crop(), 50, 60, same);
    for (const int row : {3, 15, 26}) {
      const double y = part.top + (row + 0.5) * part.height / 30 - 0.5;
      const double x = part.left + (row + 0.5) * part.width / 40 - 0.5;
      const auto pixel = picture.image.at<cv::Vec3b>(row, row);
      EXPECT_NEAR(pixel[0], 4 * y, 1);
      EXPECT_NEAR(pixel[1], 4 * x, 1);
      EXPECT_EQ(pixel[2], 9);
    }
  }
}

TEST(RandomResizedCropTest, AveragesWhereItShrinksToLessThanHalf) {
  cv::Mat stripes(400, 400, CV_8UC1);
  for (int row = 0; row < 400; ++row) {
    for (int column = 0; column < 400; ++column)
      stripes.at<uint8_t>(row, column) = (column + 5) / 10 % 2 == 0 ? 0 : 200;
  }
  Picture picture{stripes, {}};
  Draws draws(kRandom, 0);
  MakeRandomResizedCrop(TransformOf("crop_size: 20 random_resized_crop { min_area: 1 min_ratio: 1 "
                                    "max_ratio: 1 }"))
      ->Apply(draws, &picture);
  for (int column = 0; column < 20; ++column) EXPECT_EQ(picture.image.at<uint8_t>(7, column), 100);
}

TEST(RandomResizedCropTest, ExplainsWrongFields) {
  const auto error = [](const std::string& text) {
    return ErrorText<InvalidArgument>([&] { MakeRandomResizedCrop(TransformOf(text)); });
  };
  EXPECT_THAT(error("random_resized_crop { }"), HasSubstr("give crop_size, or crop_h and crop_w"));
  EXPECT_THAT(error("crop_size: 4 random_resized_crop { min_area: 0.9 max_area: 0.5 }"),
              HasSubstr("random_resized_crop: min_area is 0.9 and max_area 0.5; give 0 <"));
  EXPECT_THAT(error("crop_size: 4 random_resized_crop { min_ratio: 0 }"),
              HasSubstr("random_resized_crop: min_ratio is 0 and max_ratio 1.33333; give 0 <"));
  EXPECT_THAT(error("crop_size: 4 random_resized_crop { } img_rand_resize_lower: 5 "
                    "img_rand_resize_upper: 6"),
              HasSubstr("both choose the scale; keep one"));
}

TEST(RotationTest, TurnsCounterClockwiseAboutTheCentre) {
  cv::Mat image(5, 5, CV_8UC1);
  for (int i = 0; i < 25; ++i) image.data[i] = static_cast<uint8_t>(10 * i);
  const cv::Mat before = image;
  Turn(90, cv::Scalar(0), &image);
  for (int row = 0; row < 5; ++row) {
    for (int column = 0; column < 5; ++column)
      EXPECT_EQ(image.at<uint8_t>(row, column), before.at<uint8_t>(column, 4 - row));
  }
}

TEST(RotationTest, DrawsTheAngleEitherWay) {
  const auto step = MakeRotation(TransformOf("rotation: 30 mean_value: 200"));
  cv::Mat image(41, 41, CV_8UC1, cv::Scalar(200));
  image(cv::Rect(20, 0, 1, 20)).setTo(0);  // from the centre upwards
  int left = 0, right = 0;
  for (uint64_t record = 0; record < 200; ++record) {
    Draws draws(kRandom, record);
    Picture picture{image, {}};
    step->Apply(draws, &picture);
    // The position where the line crosses a row 10 above the centre.
    cv::Point darkest;
    cv::minMaxLoc(picture.image.row(10), nullptr, nullptr, &darkest);
    EXPECT_LE(std::abs(darkest.x - 20), 6);  // 10 tan 30 degrees
    left += darkest.x < 18;
    right += darkest.x > 22;
  }
  EXPECT_GT(left, 40);
  EXPECT_GT(right, 40);
  EXPECT_EQ(MakeRotation(TransformOf("")), nullptr);
  EXPECT_THAT(ErrorText<InvalidArgument>([] { MakeRotation(TransformOf("rotation: 181")); }),
              HasSubstr("rotation is 181 degrees; give 0 to 180"));
}

TEST(PaddingTest, AddsTheMeansColourOnEachSide) {
  const auto step =
      MakePadding(TransformOf("pad: 3 crop_size: 4 mean_value: 10 mean_value: 20 mean_value: 30"));
  cv::Mat image(5, 4, CV_8UC3, cv::Scalar(1, 2, 3));
  Picture picture{image, {}};
  Draws draws(kRandom, 0);
  step->Apply(draws, &picture);
  ASSERT_EQ(picture.image.size(), cv::Size(10, 11));
  for (int row = 0; row < 11; ++row) {
    for (int column = 0; column < 10; ++column) {
      const bool is_inside = row >= 3 && row < 8 && column >= 3 && column < 7;
      ASSERT_EQ(picture.image.at<cv::Vec3b>(row, column),
                is_inside ? cv::Vec3b(1, 2, 3) : cv::Vec3b(10, 20, 30));
    }
  }
  EXPECT_EQ(MakePadding(TransformOf("crop_size: 4")), nullptr);
}

TEST(PaddingTest, ExplainsWrongFields) {
  const auto error = [](const std::string& text) {
    return ErrorText<InvalidArgument>([&] { MakePadding(TransformOf(text)); });
  };
  EXPECT_THAT(error("pad: 4"), HasSubstr("out of which nothing is cut; give crop_size"));
  EXPECT_THAT(error("pad: 1025 crop_size: 4"), HasSubstr("pad is 1025 pixels; give 0 to 1024"));
  EXPECT_THAT(error("pad: 4 crop_size: 4 mean_file: 'm'"),
              HasSubstr("pad and mean_file 'm', which holds no mean of the pixels around"));
}

TEST(ErasingTest, ErasesARectangleWithZeros) {
  const Erasing erasing(TransformOf("erasing { prob: 0.6 }"), kRandom);
  const ImageExtents extents{3, 40, 50};
  int erased = 0;
  for (uint64_t record = 0; record < 300; ++record) {
    std::vector<float> image(static_cast<size_t>(extents.count()), 7);
    erasing.Apply(extents, Layout::kPlain, record, image.data());
    const std::optional<ImagePart> part = erasing.Choose(40, 50, record);
    erased += part.has_value();
    for (int64_t i = 0; i < extents.count(); ++i) {
      const int row = static_cast<int>(i / 50 % 40), column = static_cast<int>(i % 50);
      const bool is_inside = part && row >= part->top && row < part->top + part->height &&
                             column >= part->left && column < part->left + part->width;
      ASSERT_EQ(image[i], is_inside ? 0 : 7);
    }
    if (!part) continue;
    EXPECT_NEAR(part->height * part->width / 2000.0, 0.175, 0.18);
  }
  EXPECT_NEAR(erased, 180, 30);
}

TEST(ErasingTest, NoiseIsAsPixelsLessTheMean) {
  const Erasing erasing(TransformOf("erasing { prob: 1 fill: NOISE min_area: 0.3 max_area: 0.6 } "
                                    "mean_value: 100 mean_value: 50 mean_value: 0 scale: 0.5"),
                        kRandom);
  const ImageExtents extents{3, 40, 50};
  std::vector<float> plain(static_cast<size_t>(extents.count()), 1e6f), last = plain;
  erasing.Apply(extents, Layout::kPlain, 4, plain.data());
  erasing.Apply(extents, Layout::kChannelsLast, 4, last.data());
  const ImagePart part = *erasing.Choose(40, 50, 4);
  const double means[] = {100, 50, 0};
  for (int channel = 0; channel < 3; ++channel) {
    std::set<float> values;
    double sum = 0;
    int count = 0;
    for (int pixel = 0; pixel < 2000; ++pixel) {
      const float value = plain[channel * 2000 + pixel];
      ASSERT_EQ(value, last[pixel * 3 + channel]);
      if (value == 1e6f) continue;
      values.insert(value);
      sum += value;
      ++count;
    }
    EXPECT_EQ(count, part.height * part.width);
    EXPECT_GE(*values.begin(), (0 - means[channel]) / 2);
    EXPECT_LE(*values.rbegin(), (255 - means[channel]) / 2);
    EXPECT_GT(values.size(), 100u);
    EXPECT_NEAR(sum / count, (127.5 - means[channel]) / 2, 6);
  }
}

TEST(ErasingTest, ExplainsWrongFields) {
  const auto error = [](const std::string& text) {
    return ErrorText<InvalidArgument>([&] { Erasing(TransformOf(text), kRandom); });
  };
  EXPECT_THAT(error("erasing { prob: 1.5 }"), HasSubstr("erasing: prob is 1.5; give 0 to 1"));
  EXPECT_THAT(error("erasing { min_area: 0.5 }"),
              HasSubstr("erasing: min_area is 0.5 and max_area 0.33; give 0 <"));
  EXPECT_THAT(error("erasing { min_ratio: 2 }"), HasSubstr("erasing: min_ratio is 2; give more"));
}

TEST(MakeAugmentationsTest, CropsTurnsAndDistortsInTrainingAlone) {
  const TransformationParameter param = TransformOf(
      "crop_size: 8 random_resized_crop { } resize_param { height: 12 width: 12 } rotation: 10 "
      "rand_augment { } pad: 2 noise_param { inverse: true }");
  EXPECT_EQ(MakeAugmentations(param, {}, /*train=*/true).size(), 5u);
  EXPECT_EQ(MakeAugmentations(param, {}, /*train=*/false).size(), 2u);
}

// -------------------------------------------------------------------------------------------------

class SingleLabelSourceTest : public ::testing::Test {
 protected:
  DatumOptions Options(int batch_size, const std::string& transform, bool train = true) const {
    DatumOptions options;
    options.data.set_source(folder_.path("db"));
    options.data.set_backend(DataParameter::LMDB);
    options.data.set_batch_size(batch_size);
    options.transform = TransformOf(transform);
    options.train = train;
    options.seed = 3;
    options.layer = "l";
    return options;
  }

  // JPEG files of several sizes.
  void WriteFiles(int count) const {
    std::vector<std::string> records;
    for (int i = 0; i < count; ++i) {
      Image image{{3, 30 + i, 40 - i}, {}};
      for (int64_t k = 0; k < image.extents.count(); ++k)
        image.pixels.push_back(static_cast<uint8_t>(20 * i + k / 64));
      records.push_back(EncodedRecord(EncodeImage(image, "jpg"), i));
    }
    WriteDatabase(folder_.path("db"), records);
  }

  static std::vector<float> Read(const DatumOptions& options, int batches,
                                 const BatchForm& form = {}) {
    DatumBatches source(options);
    std::vector<float> all;
    for (int i = 0; i < batches; ++i) {
      const Batch& batch = source.Next(form);
      all.insert(all.end(), batch.floats(), batch.floats() + batch.data_shape.count());
      all.insert(all.end(), batch.labels, batch.labels + batch.size);
    }
    return all;
  }

  static constexpr char kAll[] =
      "crop_size: 16 mirror: true mean_value: 104 mean_value: 117 mean_value: 123 scale: 0.02 "
      "random_resized_crop { } rotation: 15 rand_augment { } pad: 3 erasing { prob: 0.5 fill: NOISE } "
      "distort_param { brightness_prob: 0.5 brightness_delta: 32 }";
  const caffe::testing::TemporaryFolder folder_;
};

TEST_F(SingleLabelSourceTest, BatchesDependOnSeedAndRecordAlone) {
  WriteFiles(7);
  DatumOptions options = Options(4, kAll);
  options.data.set_shuffle(true);
  options.data.set_threads(1);
  const std::vector<float> expected = Read(options, 5);
  options.data.set_threads(3);
  EXPECT_EQ(Read(options, 5), expected);
  options.seed = 4;
  EXPECT_NE(Read(options, 5), expected);
}

TEST_F(SingleLabelSourceTest, ResumesExactly) {
  WriteFiles(7);
  DatumOptions options = Options(4, kAll);
  options.data.set_shuffle(true);
  const std::vector<float> whole = Read(options, 5);
  options.start_record = 12;
  const std::vector<float> rest = Read(options, 2);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.end() - static_cast<long>(rest.size())));
}

// The same record looks different in each epoch.
TEST_F(SingleLabelSourceTest, EachEpochDrawsAnew) {
  WriteFiles(1);
  for (const char* field : {"random_resized_crop { }", "rotation: 20 ", "erasing { prob: 1 }", "pad: 9"}) {
    SCOPED_TRACE(field);
    DatumBatches source(Options(1, StrCat("crop_size: 16 ", field)));
    std::set<std::vector<float>> images;
    for (int i = 0; i < 10; ++i) {
      const Batch& batch = source.Next();
      images.insert(std::vector<float>(batch.floats(), batch.floats() + batch.data_shape.count()));
    }
    EXPECT_EQ(images.size(), 10u);
  }
}

TEST_F(SingleLabelSourceTest, TestsSeeTheCentre) {
  WriteFiles(6);
  const std::string before =
      "crop_size: 16 mean_value: 104 scale: 0.02 resize_param { height: 20 width: 24 }";
  EXPECT_EQ(Read(Options(3,
                         before + "random_resized_crop { } rotation: 15 rand_augment { } pad: 4 "
                                  "erasing { prob: 1 }",
                         /*train=*/false),
                 2),
            Read(Options(3, before, /*train=*/false), 2));
}

// When an image is turned by 30 degrees, its corners come from outside the original image.
TEST_F(SingleLabelSourceTest, WhatRotationUncoversBecomesZero) {
  Datum datum = NumberedDatum(0, 3, 32, 32);
  datum.set_data(std::string(3 * 32 * 32, static_cast<char>(200)));
  WriteDatabase(folder_.path("db"), {datum.SerializeAsString()});
  DatumBatches source(
      Options(1, "rotation: 30 mean_value: 104 mean_value: 117 mean_value: 123 scale: 0.5"));
  int turned = 0;
  for (int i = 0; i < 20; ++i) {
    const float* image = source.Next().floats();
    EXPECT_EQ(image[16 * 32 + 16], (200 - 104) * 0.5f);
    if (image[0] > 1) continue;  // hardly rotated
    ++turned;
    for (int channel = 0; channel < 3; ++channel) EXPECT_EQ(image[channel * 1024], 0);
  }
  EXPECT_GT(turned, 10);
}

TEST_F(SingleLabelSourceTest, TheCentreOfAMeanImageIsSubtractedFromEachCrop) {
  WriteFiles(3);
  BlobProto mean;
  for (const int extent : {1, 3, 20, 20}) mean.mutable_shape()->add_dim(extent);
  for (int i = 0; i < 3 * 400; ++i) mean.add_data(50);
  WriteBinaryProto(folder_.path("mean"), mean);
  const std::string crop = "crop_size: 16 mirror: true random_resized_crop { } ";
  EXPECT_EQ(Read(Options(3, crop + "mean_file: '" + folder_.path("mean") + "'"), 2),
            Read(Options(3, crop + "mean_value: 50"), 2));
}

TEST_F(SingleLabelSourceTest, OtherLayoutsAndTypesHoldTheSameNumbers) {
  WriteFiles(4);
  DatumOptions options = Options(4, kAll);
  DatumBatches plain(options), halves(options);
  const std::vector<float> expected = Read(options, 1);
  DatumBatches source(options);
  const Batch& last = source.Next({.layout = Layout::kChannelsLast, .dtype = DType::kDouble});
  const auto* numbers = static_cast<const double*>(last.data);
  for (int item = 0; item < 4; ++item) {
    for (int pixel = 0; pixel < 256; ++pixel) {
      for (int channel = 0; channel < 3; ++channel) {
        EXPECT_EQ(expected[(item * 3 + channel) * 256 + pixel],
                  numbers[(item * 256 + pixel) * 3 + channel]);
      }
    }
  }
}

TEST_F(SingleLabelSourceTest, TheHostTransformsWhereItErases) {
  WriteFiles(4);
  DatumOptions options = Options(2, "crop_size: 16 erasing { prob: 1 }");
  options.leave_transform = true;
  EXPECT_EQ(DatumBatches(options).device_transform(), nullptr);
  options.train = false;
  EXPECT_NE(DatumBatches(options).device_transform(), nullptr);
}

TEST_F(SingleLabelSourceTest, LabelsInTheImageRefuseItByName) {
  struct Field {
    const char *text, *name;
  };
  for (const Field field :
       {Field{"random_resized_crop { }", "random_resized_crop"}, Field{"rotation: 5", "rotation"},
        Field{"rand_augment { }", "rand_augment"}, Field{"erasing { }", "erasing"},
        Field{"pad: 2", "pad"}}) {
    for (const bool train : {true, false}) {
      const std::string start =
          StrCat("transform_param { ", field.name, " } is for images with one label each; ");
      AnnotatedOptions boxes;
      static_cast<DatumOptions&>(boxes) = Options(1, StrCat("crop_size: 4 ", field.text), train);
      EXPECT_THAT(ErrorText<InvalidArgument>(
                      [&] { MakeAnnotatedSource(boxes.data, boxes.annotated, boxes); }),
                  HasSubstr(start + "boxes would not follow; use annotated_data_param"));
      DenseImageDataParameter pairs;
      pairs.set_source("pairs.txt");
      pairs.set_batch_size(1);
      EXPECT_THAT(ErrorText<InvalidArgument>([&] { MakeImagePairSource(pairs, boxes); }),
                  HasSubstr(start + "labels of pixels would not follow; use crop_size and mirror"));
      WindowDataParameter windows;
      windows.set_source("windows.txt");
      windows.set_batch_size(1);
      EXPECT_THAT(ErrorText<InvalidArgument>([&] { MakeWindowSource(windows, boxes); }),
                  HasSubstr(start + "this layer cuts windows itself; use mirror"));
    }
  }
}

}  // namespace
}  // namespace caffe::data
