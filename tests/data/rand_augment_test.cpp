#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "caffe/data/transformers/affine.hpp"
#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/data/transformers/rand_augment_operations.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/support/error_text.hpp"

namespace caffe::data {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

constexpr int kHeight = 24, kWidth = 32;

TransformationParameter Fields(const std::string& text) {
  TransformationParameter param;
  ParseTextProto(text, "test", &param);
  return param;
}

// The values give channels in the order RGB, as in torchvision; the image is BGR.
template <typename Fn>
cv::Mat ImageOf(const Fn& value) {
  cv::Mat image(kHeight, kWidth, CV_8UC3);
  for (int row = 0; row < kHeight; ++row) {
    for (int column = 0; column < kWidth; ++column) {
      for (int rgb = 0; rgb < 3; ++rgb) {
        image.ptr<uint8_t>(row)[column * 3 + 2 - rgb] =
            static_cast<uint8_t>(value(row, column, rgb));
      }
    }
  }
  return image;
}
cv::Mat Rough() {
  return ImageOf([](int row, int column, int rgb) {
    return (row * 7 + column * 5 + rgb * 40 + row * column % 17) % 200 + 20;
  });
}
cv::Mat Smooth() {
  return ImageOf([](int row, int column, int rgb) { return row * 3 + column * 3 + rgb * 30 + 20; });
}

std::vector<int> SamplesOf(const cv::Mat& image) {
  std::vector<int> samples;
  for (int i = 0; i < 24; ++i) {
    samples.push_back(image.ptr<uint8_t>(i * 7 % kHeight)[i * 5 % kWidth * 3 + 2 - i % 3]);
  }
  return samples;
}

struct Expected {
  RandOperation operation;
  int magnitude;
  bool is_negative;
  std::vector<int> samples;
};

// Results of torchvision 0.19.1's autoaugment._apply_op on PIL images, interpolation BILINEAR, fill
// (90, 100, 110), with the magnitudes of RandAugment's 31 bins.
const std::vector<Expected>& OfTorchvision() {
  static const std::vector<Expected> expected = {
      {RandOperation::kShearX, 9, false, {20,  88,  155, 133, 123, 191, 90,  62,
                                          130, 108, 176, 165, 143, 115, 104, 82,
                                          150, 218, 117, 100, 157, 56,  124, 192}},
      {RandOperation::kShearX, 25, true, {20,  80,  141, 111, 118, 179, 150, 60,
                                          121, 92,  153, 159, 130, 100, 102, 72,
                                          133, 194, 111, 171, 110, 53,  114, 174}},
      {RandOperation::kShearY, 9, false, {20,  87,  154, 132, 127, 194, 172, 62,
                                          130, 107, 100, 170, 147, 110, 105, 83,
                                          150, 110, 123, 190, 153, 58,  125, 193}},
      {RandOperation::kShearY, 25, true, {20,  81,  144, 116, 100, 168, 141, 59,
                                          121, 93,  156, 110, 118, 108, 99,  71,
                                          133, 195, 90,  158, 148, 48,  111, 173}},
      {RandOperation::kTranslateX, 9, false, {90,  74,  140, 116, 110, 176, 152, 100,
                                              116, 92,  158, 152, 128, 100, 92,  68,
                                              134, 200, 104, 170, 140, 44,  110, 176}},
      {RandOperation::kTranslateX, 25, true, {56,  122, 188, 164, 100, 110, 90,  98,
                                              164, 140, 206, 110, 90,  146, 140, 116,
                                              182, 110, 90,  100, 188, 92,  158, 224}},
      {RandOperation::kTranslateY, 9, false, {90,  77,  143, 119, 113, 179, 155, 100,
                                              119, 95,  161, 155, 131, 101, 110, 71,
                                              137, 203, 107, 173, 143, 47,  113, 179}},
      {RandOperation::kTranslateY, 25, true, {47,  113, 179, 90,  149, 215, 90,  89,
                                              155, 90,  100, 191, 167, 100, 131, 107,
                                              100, 110, 143, 209, 110, 83,  149, 110}},
      {RandOperation::kRotate, 9, false, {90,  83,  148, 122, 127, 192, 166, 100,
                                          126, 101, 165, 170, 145, 99,  104, 79,
                                          143, 110, 123, 187, 142, 57,  122, 186}},
      {RandOperation::kRotate, 25, true, {90,  97,  162, 138, 107, 172, 146, 71,
                                          136, 111, 176, 145, 121, 100, 109, 84,
                                          149, 214, 94,  159, 110, 57,  122, 188}},
      {RandOperation::kBrightness, 9, false, {25,  171, 66,  64,  254, 133, 138, 107,
                                              255, 251, 138, 80,  72,  254, 198, 193,
                                              67,  219, 247, 149, 91,  121, 255, 144}},
      {RandOperation::kBrightness, 25, true, {5,  33, 13, 12, 50, 26, 27, 21, 52, 49, 27, 15,
                                              14, 50, 39, 38, 13, 43, 48, 29, 18, 24, 51, 28}},
      {RandOperation::kColor, 9, false, {11,  136, 16,  42,  208, 117, 100, 86,
                                         221, 227, 110, 59,  48,  208, 168, 149,
                                         38,  185, 224, 119, 68,  87,  212, 126}},
      {RandOperation::kColor, 25, true, {44, 129, 149, 75,  177, 69,  133, 79,  173, 117, 103, 72,
                                         81, 177, 120, 159, 92,  137, 114, 112, 81,  120, 181, 78}},
      {RandOperation::kContrast, 9, false, {0,   139, 33,  32,  221, 100, 106, 75,
                                            233, 219, 106, 47,  39,  221, 165, 160,
                                            34,  187, 215, 117, 59,  89,  226, 112}},
      {RandOperation::kContrast, 25, true, {95,  123, 103, 102, 140, 116, 117, 111,
                                            142, 139, 117, 105, 104, 140, 129, 128,
                                            103, 133, 138, 119, 108, 114, 141, 118}},
      {RandOperation::kSharpness, 9, false, {20,  133, 50,  51,  200, 103, 110, 85,
                                             213, 198, 109, 64,  58,  200, 156, 153,
                                             53,  173, 193, 118, 72,  96,  206, 112}},
      {RandOperation::kSharpness, 25, true, {20,  138, 55,  51,  199, 108, 106, 85,
                                             195, 198, 109, 60,  54,  200, 153, 149,
                                             53,  173, 198, 118, 71,  95,  195, 117}},
      {RandOperation::kPosterize, 9, false, {20,  134, 52,  50,  200, 104, 108, 84,
                                             208, 198, 108, 62,  56,  200, 156, 152,
                                             52,  172, 194, 118, 72,  96,  204, 114}},
      {RandOperation::kPosterize, 25, false, {16,  128, 48,  48,  200, 104, 104, 80,
                                              208, 192, 104, 56,  56,  200, 152, 152,
                                              48,  168, 192, 112, 72,  96,  200, 112}},
      {RandOperation::kSolarize, 9, false, {20, 135, 52,  51,  55, 105, 109, 85,
                                            46, 57,  109, 63,  57, 55,  156, 152,
                                            53, 173, 60,  118, 72, 96,  51,  114}},
      {RandOperation::kSolarize, 25, false, {20,  120, 203, 204, 55,  150, 146, 170,
                                             46,  57,  146, 192, 198, 55,  99,  103,
                                             202, 82,  60,  137, 183, 159, 51,  141}},
      {RandOperation::kAutoContrast, 9, false, {0,   147, 41,  39,  230, 108, 114, 83,
                                                242, 228, 114, 55,  47,  230, 174, 169,
                                                42,  196, 224, 125, 66,  97,  235, 120}},
      {RandOperation::kEqualize, 9, false, {0,   222, 43,  59,  255, 116, 163, 130,
                                            244, 255, 172, 58,  71,  255, 177, 241,
                                            70,  200, 255, 188, 70,  142, 255, 126}},
  };
  return expected;
}

bool Moves(RandOperation operation) {
  return RandOperation::kShearX <= operation && operation <= RandOperation::kRotate;
}

// At the border PIL takes the fill colour where OpenCV interpolates with it, and OpenCV rounds
// positions to 1/32 of a pixel.
TEST(RandAugmentTest, OperationsAreTorchvisions) {
  for (const Expected& expected : OfTorchvision()) {
    const RandOperation operation = expected.operation;
    SCOPED_TRACE(StrCat("operation ", static_cast<int>(operation), ", ", expected.magnitude));
    cv::Mat image = Moves(operation) ? Smooth() : Rough();
    const double strength = StrengthOf(operation, expected.magnitude, kHeight, kWidth);
    ApplyRandOperation(operation, expected.is_negative ? -strength : strength,
                       cv::Scalar(110, 100, 90), &image);
    const std::vector<int> samples = SamplesOf(image);
    int others = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      const int difference = std::abs(samples[i] - expected.samples[i]);
      if (Moves(operation)) {
        others += difference > 1;
      } else {
        EXPECT_EQ(difference, 0) << "sample " << i;
      }
    }
    EXPECT_LE(others, 3) << ::testing::PrintToString(samples);
  }
}

TEST(RandAugmentTest, HasTorchvisionsStrengths) {
  EXPECT_DOUBLE_EQ(StrengthOf(RandOperation::kShearX, 30, 10, 20), 0.3);
  EXPECT_DOUBLE_EQ(StrengthOf(RandOperation::kTranslateX, 30, 331, 662), 300);
  EXPECT_DOUBLE_EQ(StrengthOf(RandOperation::kTranslateY, 30, 331, 662), 150);
  EXPECT_DOUBLE_EQ(StrengthOf(RandOperation::kRotate, 15, 10, 20), 15);
  EXPECT_DOUBLE_EQ(StrengthOf(RandOperation::kColor, 10, 10, 20), 0.3);
  EXPECT_EQ(StrengthOf(RandOperation::kSolarize, 0, 10, 20), 255);
  EXPECT_EQ(StrengthOf(RandOperation::kPosterize, 11, 10, 20), 7);
  EXPECT_EQ(StrengthOf(RandOperation::kPosterize, 30, 10, 20), 4);
}

TEST(RandAugmentTest, DrawsAsManyOperationsAsItIsTold) {
  const RandomStream random(1, 2);
  const cv::Mat source = Rough();
  const cv::Mat untouched = source.clone();
  for (const int operations : {0, 1, 2}) {
    const auto step =
        MakeRandAugment(Fields(StrCat("rand_augment { operations: ", operations, " }")));
    std::set<std::vector<int>> found;
    for (uint64_t record = 0; record < 1000; ++record) {
      Picture picture{source, {}};
      Draws draws(random, record);
      step->Apply(draws, &picture);
      EXPECT_EQ(picture.image.size(), source.size());
      found.insert(SamplesOf(picture.image));
    }
    // One operation is the identity, nine have two signs.
    const size_t least = operations == 0 ? 1 : operations == 1 ? 1 + 9 * 2 + 4 : 100;
    EXPECT_GE(found.size(), least);
    EXPECT_LE(found.size(), operations == 2 ? 1000 : least);
  }
  EXPECT_EQ(cv::norm(source, untouched, cv::NORM_INF), 0);
}

TEST(RandAugmentTest, TakesGrayImages) {
  const cv::Mat gray(8, 8, CV_8UC1, cv::Scalar(100));
  for (int i = 0; i < kNumRandOperations; ++i) {
    const auto operation = static_cast<RandOperation>(i);
    cv::Mat image = gray;
    ApplyRandOperation(operation, StrengthOf(operation, 20, 8, 8), cv::Scalar(7), &image);
    EXPECT_EQ(image.type(), CV_8UC1);
    EXPECT_EQ(image.size(), gray.size());
  }
}

TEST(RandAugmentTest, ExplainsWrongNumbersAndChannels) {
  EXPECT_THAT(
      ErrorText<InvalidArgument>([] { MakeRandAugment(Fields("rand_augment { magnitude: 31 }")); }),
      HasSubstr("rand_augment: magnitude is 31; give 0 to 30"));
  EXPECT_THAT(ErrorText<InvalidArgument>(
                  [] { MakeRandAugment(Fields("rand_augment { operations: -1 }")); }),
              HasSubstr("rand_augment: operations is -1; give 0 to 14"));
  const auto step = MakeRandAugment(Fields("rand_augment { }"));
  const RandomStream random(1, 2);
  Draws draws(random, 0);
  Picture picture{cv::Mat(4, 4, CV_8UC2, cv::Scalar(1, 2)), {}};
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { step->Apply(draws, &picture); }),
              HasSubstr("an image of 2 channels; set force_color or force_gray"));
}

}  // namespace
}  // namespace caffe::data
