#include "caffe/data/transformers/augmentation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/data/batches.hpp"
#include "tests/data/databases.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

TransformationParameter Parse(const std::string& text) {
  TransformationParameter param;
  ParseTextProto(text, "test", &param);
  return param;
}

// Pixel (row, column) of channel c is row + 2 * column + 30 * c.
Picture MakePicture(int rows, int columns, std::vector<ObjectBox> boxes = {}) {
  cv::Mat image(rows, columns, CV_8UC3);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      for (int channel = 0; channel < 3; ++channel) {
        image.data[(row * columns + column) * 3 + channel] =
            static_cast<uint8_t>(row + 2 * column + 30 * channel);
      }
    }
  }
  return {image, std::move(boxes)};
}

ObjectBox Box(float xmin, float ymin, float xmax, float ymax, int label = 1) {
  return {.label = label, .xmin = xmin, .ymin = ymin, .xmax = xmax, .ymax = ymax};
}

int Pixel(const cv::Mat& image, int row, int column, int channel = 0) {
  return image.data[row * image.step + column * 3 + channel];
}

// Calls fn(result) for the results of many records.
template <typename Fn>
void ForManyRecords(const Augmentation& step, const Picture& picture, const Fn& fn) {
  const RandomStream random(1, 2);
  for (uint64_t record = 0; record < 200; ++record) {
    Picture changed = {picture.image.clone(), picture.boxes};
    Draws draws(random, record);
    step.Apply(draws, &changed);
    fn(changed);
  }
}

TEST(RandomResizeTest, IsOffByDefault) {
  EXPECT_TRUE(MakeAugmentations(Parse("crop_size: 3 mirror: true"), {}, /*train=*/true).empty());
}

TEST(RandomResizeTest, DrawsTheShorterSide) {
  const auto step = MakeRandomResize(Parse("img_rand_resize_lower: 6 img_rand_resize_upper: 9"));
  std::set<int> heights;
  ForManyRecords(*step, MakePicture(10, 20), [&](const Picture& picture) {
    heights.insert(picture.image.rows);
    EXPECT_EQ(picture.image.cols, 2 * picture.image.rows);
  });
  EXPECT_EQ(heights, (std::set<int>{6, 7, 8, 9}));
}

TEST(RandomResizeTest, GrowsOnlyWhenAllowed) {
  const std::string fields = "img_rand_resize_lower: 15 img_rand_resize_upper: 15 ";
  ForManyRecords(*MakeRandomResize(Parse(fields)), MakePicture(10, 20),
                 [](const Picture& picture) { EXPECT_EQ(picture.image.rows, 10); });
  ForManyRecords(*MakeRandomResize(Parse(fields + "allow_upscale: true")), MakePicture(10, 20),
                 [](const Picture& picture) { EXPECT_EQ(picture.image.size(), cv::Size(30, 15)); });
}

TEST(RandomResizeTest, ChangesTheAspect) {
  const auto step = MakeRandomResize(
      Parse("rand_resize_ratio_lower: 1 rand_resize_ratio_upper: 1.5 allow_upscale: true "
            "img_rand_resize_lower: 20 img_rand_resize_upper: 20"));
  int tall = 0;
  ForManyRecords(*step, MakePicture(10, 10), [&](const Picture& picture) {
    EXPECT_EQ(std::min(picture.image.rows, picture.image.cols), 20);
    EXPECT_LE(std::max(picture.image.rows, picture.image.cols), 30);
    tall += picture.image.rows > picture.image.cols;
  });
  EXPECT_GT(tall, 50);
  EXPECT_LT(tall, 150);
}

TEST(RandomResizeTest, StretchesButNeverBelowTheCrop) {
  const auto step = MakeRandomResize(
      Parse("vertical_stretch_lower: 0.25 vertical_stretch_upper: 0.5 crop_size: 4"));
  ForManyRecords(*step, MakePicture(10, 20), [&](const Picture& picture) {
    EXPECT_EQ(picture.image.cols, 20);
    EXPECT_GE(picture.image.rows, 4);
    EXPECT_LE(picture.image.rows, 5);
  });
}

TEST(RandomResizeTest, ExplainsWrongFields) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] {
                MakeRandomResize(Parse("img_rand_resize_lower: 9 img_rand_resize_upper: 6"));
              }),
              HasSubstr("lower is 9 and img_rand_resize_upper 6"));
}

TEST(DistortionTest, ChangesBrightnessAndContrast) {
  const Picture picture = MakePicture(4, 4);
  std::set<int> offsets;
  ForManyRecords(
      *MakeDistortion(Parse("distort_param { brightness_prob: 0.5 brightness_delta: 9 }")), picture,
      [&](const Picture& changed) {
        const int offset = Pixel(changed.image, 3, 3) - Pixel(picture.image, 3, 3);
        offsets.insert(offset);
        EXPECT_EQ(Pixel(changed.image, 2, 1, 2) - Pixel(picture.image, 2, 1, 2), offset);
      });
  EXPECT_GE(*offsets.begin(), -9);
  EXPECT_LE(*offsets.rbegin(), 9);
  EXPECT_GT(offsets.size(), 10u);
  ForManyRecords(*MakeDistortion(Parse(
                     "distort_param { contrast_prob: 1 contrast_lower: 2 contrast_upper: 2 }")),
                 picture, [&](const Picture& changed) {
                   EXPECT_EQ(Pixel(changed.image, 3, 2, 1), 2 * Pixel(picture.image, 3, 2, 1));
                 });
}

TEST(DistortionTest, TurnsColoursAndShufflesChannels) {
  Picture red{cv::Mat(2, 2, CV_8UC3, cv::Scalar(0, 0, 200)), {}};
  bool turned_green = false;
  ForManyRecords(*MakeDistortion(Parse("distort_param { hue_prob: 1 hue_delta: 18 }")), red,
                 [&](const Picture& changed) {
                   EXPECT_GE(Pixel(changed.image, 0, 0, 2), 195);
                   turned_green |= Pixel(changed.image, 0, 0, 1) > 80;
                 });
  EXPECT_TRUE(turned_green);
  ForManyRecords(
      *MakeDistortion(
          Parse("distort_param { saturation_prob: 1 saturation_lower: 0 saturation_upper: 0 }")),
      red, [&](const Picture& changed) { EXPECT_EQ(Pixel(changed.image, 0, 0, 0), 200); });
  std::set<int> places;
  ForManyRecords(*MakeDistortion(Parse("distort_param { random_order_prob: 1 }")), red,
                 [&](const Picture& changed) {
                   for (int channel = 0; channel < 3; ++channel) {
                     if (Pixel(changed.image, 0, 0, channel) == 200) places.insert(channel);
                   }
                 });
  EXPECT_EQ(places, (std::set<int>{0, 1, 2}));
}

TEST(ExpansionTest, PutsTheImageAndItsBoxesOnALargerCanvas) {
  const Picture picture = MakePicture(10, 20, {Box(0, 0, 1, 1), Box(0.5f, 0.2f, 0.75f, 0.6f, 4)});
  const auto step = MakeExpansion(
      Parse("expand_param { max_expand_ratio: 3 } mean_value: 7 mean_value: 8 mean_value: 9"));
  int largest = 0;
  ForManyRecords(*step, picture, [&](const Picture& changed) {
    const int rows = changed.image.rows, columns = changed.image.cols;
    largest = std::max(largest, rows);
    ASSERT_EQ(changed.boxes.size(), 2u);
    const ObjectBox& whole = changed.boxes[0];
    const int top = static_cast<int>(std::lround(whole.ymin * rows)),
              left = static_cast<int>(std::lround(whole.xmin * columns));
    EXPECT_EQ(Pixel(changed.image, top, left, 1), Pixel(picture.image, 0, 0, 1));
    EXPECT_EQ(Pixel(changed.image, top + 9, left + 19), Pixel(picture.image, 9, 19));
    if (top > 0) {
      EXPECT_EQ(Pixel(changed.image, 0, 0, 2), 9);
    }
    EXPECT_EQ(changed.boxes[1].label, 4);
    EXPECT_NEAR(changed.boxes[1].xmin * columns, left + 10, 1e-3);
    EXPECT_NEAR(changed.boxes[1].ymax * rows, top + 6, 1e-3);
  });
  EXPECT_GT(largest, 25);
}

TEST(BatchSamplersTest, CutPatchesThatSatisfyTheConstraint) {
  AnnotatedDataParameter annotated;
  ParseTextProto(
      "batch_sampler { sampler { min_scale: 0.3 max_scale: 0.9 min_aspect_ratio: 0.5 "
      "max_aspect_ratio: 2 } sample_constraint { min_object_coverage: 1 } max_sample: 1 }",
      "test", &annotated);
  const Picture picture = MakePicture(100, 100, {Box(0.4f, 0.4f, 0.6f, 0.6f)});
  const auto step = MakeBatchSamplers(annotated, Parse(""));
  int cut = 0;
  ForManyRecords(*step, picture, [&](const Picture& changed) {
    ASSERT_EQ(changed.boxes.size(), 1u);
    const ObjectBox& box = changed.boxes[0];
    if (changed.image.rows < 100) ++cut;
    // The object is complete, wherever the patch is.
    EXPECT_NEAR(box.width() * changed.image.cols, 20, 1.5);
    EXPECT_NEAR(box.height() * changed.image.rows, 20, 1.5);
    const int column = static_cast<int>(box.xmin * changed.image.cols + 0.5f),
              row = static_cast<int>(box.ymin * changed.image.rows + 0.5f);
    EXPECT_NEAR(Pixel(changed.image, row, column), 40 + 80, 4);
  });
  EXPECT_GT(cut, 100);
}

TEST(BatchSamplersTest, EmitConstraintDecidesWhichBoxesStay) {
  AnnotatedDataParameter annotated;
  ParseTextProto("batch_sampler { sampler { min_scale: 0.5 max_scale: 0.5 } max_sample: 1 }",
                 "test", &annotated);
  const Picture picture = MakePicture(40, 40, {Box(0.2f, 0.2f, 0.6f, 0.6f)});
  int kept = 0, dropped = 0;
  ForManyRecords(*MakeBatchSamplers(annotated, Parse("emit_constraint { emit_type: CENTER }")),
                 picture, [&](const Picture& changed) {
                   kept += changed.boxes.size() == 1;
                   dropped += changed.boxes.empty();
                 });
  EXPECT_GT(kept, 20);
  EXPECT_GT(dropped, 20);
  EXPECT_EQ(kept + dropped, 200);
}

TEST(FitTest, HasThreeModes) {
  const auto size = [](const std::string& mode) {
    cv::Size found;
    ForManyRecords(
        *MakeFit(Parse("resize_param { height: 30 width: 30 resize_mode: " + mode + " }")),
        MakePicture(10, 20), [&](const Picture& changed) { found = changed.image.size(); });
    return found;
  };
  EXPECT_EQ(size("WARP"), cv::Size(30, 30));
  EXPECT_EQ(size("FIT_SMALL_SIZE"), cv::Size(60, 30));
  EXPECT_EQ(size("FIT_LARGE_SIZE_AND_PAD"), cv::Size(30, 30));
}

TEST(FitTest, PaddingMovesTheBoxes) {
  const auto step = MakeFit(
      Parse("resize_param { height: 40 width: 40 resize_mode: FIT_LARGE_SIZE_AND_PAD pad_value: 5 "
            "interp_mode: NEAREST }"));
  ForManyRecords(*step, MakePicture(10, 20, {Box(0, 0, 1, 1), Box(0.5f, 0.5f, 1, 1)}),
                 [](const Picture& changed) {
                   EXPECT_EQ(Pixel(changed.image, 0, 0, 1), 5);
                   EXPECT_EQ(Pixel(changed.image, 10, 0, 1), 30);
                   EXPECT_FLOAT_EQ(changed.boxes[0].ymin, 0.25f);
                   EXPECT_FLOAT_EQ(changed.boxes[0].ymax, 0.75f);
                   EXPECT_FLOAT_EQ(changed.boxes[1].ymin, 0.5f);
                   EXPECT_FLOAT_EQ(changed.boxes[1].xmin, 0.5f);
                 });
}

TEST(NoiseTest, EachKindChangesTheImage) {
  const Picture picture = MakePicture(32, 32);
  for (const char* kind : {"hist_eq", "inverse", "decolorize", "gauss_blur", "posterize", "erode",
                           "clahe", "convert_to_hsv", "convert_to_lab"}) {
    SCOPED_TRACE(kind);
    ForManyRecords(*MakeNoise(Parse(StrCat("noise_param { ", kind, ": true }"))), picture,
                   [&](const Picture& changed) {
                     EXPECT_EQ(changed.image.size(), picture.image.size());
                     EXPECT_NE(cv::norm(changed.image, picture.image), 0);
                   });
  }
  ForManyRecords(*MakeNoise(Parse("noise_param { inverse: true }")), picture,
                 [&](const Picture& changed) {
                   EXPECT_EQ(Pixel(changed.image, 3, 4), 255 - Pixel(picture.image, 3, 4));
                 });
  ForManyRecords(*MakeNoise(Parse("noise_param { jpeg: 20 }")), picture,
                 [&](const Picture& changed) {
                   EXPECT_GT(cv::norm(changed.image, picture.image, cv::NORM_INF), 0);
                   EXPECT_LT(cv::norm(changed.image, picture.image, cv::NORM_INF), 80);
                 });
  ForManyRecords(
      *MakeNoise(Parse("noise_param { saltpepper: true saltpepper_param { fraction: 0.1 } }")),
      picture, [&](const Picture& changed) {
        int grains = 0;
        for (int i = 0; i < 32 * 32; ++i) {
          grains += changed.image.data[3 * i] == 255 || changed.image.data[3 * i + 1] == 0;
        }
        EXPECT_GT(grains, 50);
        EXPECT_LE(grains, 110);
      });
}

// ---------------------------------------------------------------------------------------------

class AnnotatedSourceTest : public ::testing::Test {
 protected:
  // Image i is 12x16 with the value 10 * i + 1, and has i boxes of class i.
  static AnnotatedDatum Record(int index) {
    AnnotatedDatum record;
    Datum* datum = record.mutable_datum();
    datum->set_channels(3), datum->set_height(12), datum->set_width(16);
    datum->set_data(std::string(3 * 12 * 16, static_cast<char>(10 * index + 1)));
    record.set_type(AnnotatedDatum::BBOX);
    AnnotationGroup* group = record.add_annotation_group();
    group->set_group_label(index);
    for (int i = 0; i < index; ++i) {
      Annotation* annotation = group->add_annotation();
      annotation->set_instance_id(i);
      NormalizedBBox* box = annotation->mutable_bbox();
      box->set_xmin(0.25f), box->set_ymin(0.5f), box->set_xmax(0.5f), box->set_ymax(1);
      box->set_difficult(i == 1);
    }
    return record;
  }

  AnnotatedOptions Options(int batch_size, const std::string& transform = "") const {
    DataParameter data;
    data.set_source(folder_.path("db"));
    data.set_backend(DataParameter::LMDB);
    data.set_batch_size(batch_size);
    AnnotatedOptions options;
    options.data = data;
    options.transform = Parse(transform);
    options.train = true;
    options.seed = 3;
    options.layer = "l";
    return options;
  }

  void WriteRecords(int first, int count) const {
    std::vector<std::string> values;
    for (int i = first; i < first + count; ++i) values.push_back(Record(i).SerializeAsString());
    WriteDatabase(folder_.path("db"), values);
  }

  const caffe::testing::TemporaryFolder folder_;
};

TEST_F(AnnotatedSourceTest, GivesRowsOfBoxes) {
  WriteRecords(0, 4);
  AnnotatedBatches source(Options(3));
  EXPECT_EQ(source.data_shape(), (Shape{3, 3, 12, 16}));
  EXPECT_EQ(source.label_shape(), (Shape{1, 1, 8, 8}));
  const Batch& batch = source.Next();
  const auto row = [&](int index) {
    return std::vector<float>(batch.labels + 8 * index, batch.labels + 8 * index + 8);
  };
  EXPECT_EQ(row(0), (std::vector<float>{1, 1, 0, 0.25, 0.5, 0.5, 1, 0}));
  EXPECT_EQ(row(1), (std::vector<float>{2, 2, 0, 0.25, 0.5, 0.5, 1, 0}));
  EXPECT_EQ(row(2), (std::vector<float>{2, 2, 1, 0.25, 0.5, 0.5, 1, 1}));
  for (int i = 3; i < 8; ++i) EXPECT_EQ(row(i), std::vector<float>(8, -1));
  EXPECT_EQ(batch.floats()[0], 1);
}

TEST_F(AnnotatedSourceTest, GrowsWithTheBoxes) {
  WriteRecords(6, 3);  // 6 + 7 + 8 boxes
  AnnotatedBatches source(Options(3));
  EXPECT_EQ(source.Next().label_shape, (Shape{1, 1, 32, 8}));
  EXPECT_EQ(source.label_shape(), (Shape{1, 1, 32, 8}));
}

TEST_F(AnnotatedSourceTest, BoxesFollowMirrorAndCrop) {
  WriteRecords(1, 1);
  AnnotatedBatches source(Options(1, "mirror: true crop_h: 12 crop_w: 8"));
  std::set<std::vector<float>> rows;
  for (int i = 0; i < 200; ++i) {
    const Batch& batch = source.Next();
    EXPECT_EQ(batch.data_shape, (Shape{1, 3, 12, 8}));
    rows.insert(std::vector<float>(batch.labels + 3, batch.labels + 7));
  }
  // The crop at column 0, unmirrored: 0.25 .. 0.5 of 16 columns is 0.5 .. 1 of 8.
  EXPECT_EQ(rows.count({0.5, 0.5, 1, 1}), 1u);
  EXPECT_EQ(rows.count({0, 0.5, 0.5, 1}), 1u);
  EXPECT_GT(rows.size(), 6u);
  for (const std::vector<float>& row : rows) {
    EXPECT_LT(row[0], row[2] + 0.001f);
  }
}

TEST_F(AnnotatedSourceTest, TheSameSeedGivesTheSameBatchesForAnyThreads) {
  WriteRecords(0, 6);
  const auto batches = [&](int threads) {
    AnnotatedOptions options = Options(
        4,
        "resize_param { height: 10 width: 10 interp_mode: LINEAR interp_mode: AREA } mirror: "
        "true expand_param { max_expand_ratio: 2 } distort_param { brightness_prob: 0.5 "
        "brightness_delta: 32 }");
    options.data.set_threads(threads);
    ParseTextProto("batch_sampler { sampler { min_scale: 0.3 } max_sample: 1 max_trials: 5 }",
                   "test", &options.annotated);
    AnnotatedBatches source(options);
    std::vector<float> all;
    for (int i = 0; i < 5; ++i) {
      const Batch& batch = source.Next();
      all.insert(all.end(), batch.floats(), batch.floats() + batch.data_shape.count());
      all.insert(all.end(), batch.labels, batch.labels + batch.label_shape.count());
    }
    return all;
  };
  const std::vector<float> one = batches(1);
  EXPECT_EQ(batches(3), one);
}

TEST_F(AnnotatedSourceTest, NamesWhatIsWrong) {
  const auto expect_error = [&](const AnnotatedDatum& record, const AnnotatedOptions& options,
                                const char* text) {
    std::filesystem::remove_all(folder_.path("db"));
    WriteDatabase(folder_.path("db"), {record.SerializeAsString()});
    EXPECT_THAT(ErrorText<Error>([&] { AnnotatedBatches(options).Next(); }), HasSubstr(text));
  };
  AnnotatedDatum no_box = Record(1);
  no_box.mutable_annotation_group(0)->mutable_annotation(0)->clear_bbox();
  expect_error(no_box, Options(1), "object 0 of class 1 has no box");
  AnnotatedDatum short_image = Record(1);
  short_image.mutable_datum()->set_height(13);
  expect_error(short_image, Options(1), "a Datum of 3x13x16 needs 624 values");
  AnnotatedDatum empty;
  expect_error(empty, Options(1), "not an AnnotatedDatum");
  AnnotatedOptions mapped = Options(1);
  std::ofstream(folder_.path("map")) << "item { name: 'cat' label: 2 }";
  mapped.annotated.set_label_map_file(folder_.path("map"));
  expect_error(Record(1), mapped, "an object of class 1, which");
}

}  // namespace
}  // namespace caffe::data
