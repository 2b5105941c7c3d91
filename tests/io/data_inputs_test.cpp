#include "caffe/io/data_inputs.hpp"

#include <gmock/gmock.h>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

NetParameter NetOf(const std::string& layers) {
  NetParameter net;
  ParseTextProto("name: 'n' " + layers, "test", &net);
  return net;
}

constexpr const char* kBothPhases = R"(
  layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN }
          transform_param { crop_size: 227 } data_param { source: '/no/such/a' batch_size: 32 } }
  layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TEST }
          transform_param { crop_size: 227 } data_param { source: '/no/such/b' batch_size: 50 } }
  layer { name: 'r' type: 'ReLU' bottom: 'data' top: 'data' })";

TEST(DataInputsTest, ReadsDimensions) {
  EXPECT_THAT(
      ParseBlobDims("data=2,3,227,227 label=2"),
      ElementsAre(Pair("data", ElementsAre(2, 3, 227, 227)), Pair("label", ElementsAre(2))));
  EXPECT_THAT(ParseBlobDims(""), SizeIs(0));
  const auto parse = [](const char* text) { return [text] { ParseBlobDims(text); }; };
  EXPECT_THAT(ErrorText<InvalidArgument>(parse("2,3")), HasSubstr("'2,3' names no blob"));
  EXPECT_THAT(ErrorText<InvalidArgument>(parse("x=2,0")), HasSubstr("'0' is not a positive dim"));
  EXPECT_THAT(ErrorText<InvalidArgument>(parse("x=2,3x")), HasSubstr("'3x' is not a positive"));
  EXPECT_THAT(ErrorText<InvalidArgument>(parse("x=")), HasSubstr("'x='"));
}

TEST(DataInputsTest, ReplacesDataLayersOfEachPhase) {
  NetParameter net = NetOf(kBothPhases);
  ReplaceByInputs({{"data", {2, 3, 8, 8}}, {"label", {2}}}, &net);
  ASSERT_EQ(net.layer_size(), 3);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(net.layer(i).type(), "Input");
    EXPECT_EQ(net.layer(i).include(0).phase(), i == 0 ? TRAIN : TEST);
    EXPECT_EQ(net.layer(i).input_param().shape(0).dim(3), 8);
    EXPECT_EQ(net.layer(i).input_param().shape(1).dim_size(), 1);
  }
}

TEST(DataInputsTest, NamesWhatIsNotGiven) {
  NetParameter net = NetOf(kBothPhases);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] {
                ReplaceByInputs({{"dota", {2}}}, &net);
              }),
              HasSubstr("no data layer of net 'n' writes 'dota'; written: data, label"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] {
                ReplaceByInputs({{"data", {2}}}, &net);
              }),
              HasSubstr("writes 'label' too; give its dimensions"));
}

TEST(DataInputsTest, AssumesWhatTheOptionsSay) {
  NetParameter net = NetOf(kBothPhases);
  EXPECT_THAT(ReplaceMissingData(&net),
              ElementsAre("layer 'd': /no/such/a is not there; assumed data=32,3,227,227 label=32 "
                          "(--input gives others)",
                          HasSubstr("data=50,3,227,227 label=50")));
  EXPECT_EQ(net.layer(1).type(), "Input");
  EXPECT_EQ(net.layer(1).input_param().shape(0).dim(0), 50);
}

TEST(DataInputsTest, AssumesTheLengthOfTokens) {
  NetParameter net = NetOf(
      "layer { name: 'd' type: 'Tokens' top: 'now' top: 'next' tokens_param { source: '/no/such/a' "
      "batch_size: 4 length: 9 } }");
  EXPECT_THAT(ReplaceMissingData(&net), ElementsAre(HasSubstr("assumed now=4,9 next=4,9")));
}

TEST(DataInputsTest, KnowsTheOptionsThatSetASize) {
  const auto dims = [](const std::string& options) {
    return DimsByOptions(
        NetOf("layer { name: 'd' type: 'X' top: 'data' " + options + "}").layer(0));
  };
  EXPECT_THAT(dims("data_param { source: 'a' batch_size: 4 } transform_param { crop_size: 5 "
                   "force_gray: true }"),
              ElementsAre(Pair("data", ElementsAre(4, 1, 5, 5))));
  EXPECT_THAT(dims("image_data_param { source: 'a' batch_size: 4 new_height: 6 new_width: 7 }"),
              ElementsAre(Pair("data", ElementsAre(4, 3, 6, 7))));
  EXPECT_THAT(dims("window_data_param { source: 'a' batch_size: 4 crop_size: 9 }"),
              ElementsAre(Pair("data", ElementsAre(4, 3, 9, 9))));
  EXPECT_THAT(
      dims("data_param { source: 'a' batch_size: 4 } top: 'label' annotated_data_param {} "
           "transform_param { resize_param { height: 30 width: 20 } }"),
      ElementsAre(Pair("data", ElementsAre(4, 3, 30, 20)), Pair("label", ElementsAre(1, 1, 4, 8))));
  EXPECT_THAT(dims("data_param { source: 'a' batch_size: 4 }"), SizeIs(0));
  EXPECT_THAT(dims("input_param { shape { dim: 4 } }"), SizeIs(0));
}

TEST(DataInputsTest, LeavesDataThatIsThere) {
  NetParameter net =
      NetOf("layer { name: 'd' type: 'Data' top: 'x' data_param { source: '/' batch_size: 4 } }");
  EXPECT_THAT(ReplaceMissingData(&net), SizeIs(0));
  EXPECT_EQ(net.layer(0).type(), "Data");
}

TEST(DataInputsTest, SaysWhatToGiveWhereNothingSetsASize) {
  NetParameter net = NetOf(
      "layer { name: 'd' type: 'Data' top: 'x' data_param { source: '/no/such' batch_size: 4 } }");
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { ReplaceMissingData(&net); }),
              HasSubstr("give --input x=N,C,H,W"));
  net = NetOf(
      "layer { name: 'd' type: 'HDF5Data' top: 'x' top: 'y' "
      "hdf5_data_param { source: '/no/such.txt' batch_size: 4 } }");
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { ReplaceMissingData(&net); }),
              HasSubstr("/no/such.txt, the list of HDF5 files, is not there; write it, or give "
                        "--input x=N,C,H,W"));
}

}  // namespace
}  // namespace caffe
