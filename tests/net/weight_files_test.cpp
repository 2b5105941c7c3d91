// Weights in HDF5 files: parameters that layers share, and layers whose names are paths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "caffe/error.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

// Layer 'tied' has the weights of 'one' and its own bias.
constexpr char kShared[] = R"(
  layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
  layer { name: "one" type: "InnerProduct" bottom: "x" top: "a" param { name: "w" }
    inner_product_param { num_output: 3 weight_filler { type: "gaussian" std: 1 } } }
  layer { name: "tied" type: "InnerProduct" bottom: "a" top: "b" param { name: "w" }
    inner_product_param { num_output: 3 weight_filler { type: "gaussian" std: 1 }
                          bias_filler { type: "gaussian" std: 1 } } }
)";

class WeightFilesTest : public ::testing::Test {
 protected:
  static Net Make(const std::string& text, uint64_t seed, bool in_double = false) {
    NetParameter param;
    ParseTextProto(text, "test", &param);
    NetOptions options{.seed = seed};
    if (in_double) options.precision = FP64;
    return Net(param, options);
  }

  // Numbers of all layers, as doubles.
  static std::vector<double> Values(const Net& net) {
    std::vector<double> values;
    for (const std::string& layer : net.layer_names()) {
      for (const auto& blob : net.layer_params(layer)) {
        const bool in_double = blob->dtype() == DType::kDouble;
        for (int64_t i = 0; i < blob->count(); ++i)
          values.push_back(in_double ? blob->cpu_data<double>()[i] : blob->cpu_data<float>()[i]);
      }
    }
    return values;
  }

  // Expects that a net with another seed has the same numbers after it has read the first one's
  // file.
  void ExpectRoundTrip(const std::string& text, bool in_double = false) {
    const Net first = Make(text, 1, in_double);
    Net second = Make(text, 2, in_double);
    ASSERT_NE(Values(first), Values(second));
    const std::string file = folder_.path("net.caffemodel.h5");
    first.ToHDF5(file);
    second.CopyTrainedLayersFrom(file);
    EXPECT_EQ(Values(first), Values(second));
  }

  testing::TemporaryFolder folder_;
};

TEST_F(WeightFilesTest, AFileLeavesOutWhatAnEarlierLayerOwns) {
  ExpectRoundTrip(kShared);
  const Hdf5Reader reader(folder_.path("net.caffemodel.h5"));
  EXPECT_TRUE(reader.Contains("data/one/0"));
  EXPECT_FALSE(reader.Contains("data/tied/0"));
  EXPECT_TRUE(reader.Contains("data/tied/1"));
}

TEST_F(WeightFilesTest, ALayersGroupMayHoldThatOfAnother) {
  ExpectRoundTrip(R"(
    layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "a"
      inner_product_param { num_output: 3 weight_filler { type: "gaussian" std: 1 } } }
    layer { name: "ip/scale" type: "Scale" bottom: "a" top: "b"
      scale_param { filler { type: "gaussian" std: 1 } } })");
}

// Such groups exist in a damaged file, or through hard links.
TEST_F(WeightFilesTest, GroupsWithoutAnEndAreRefused) {
  const std::string file = folder_.path("net.caffemodel.h5");
  {
    std::string name = "data";
    Hdf5Writer writer(file);
    for (int i = 0; i < 102; ++i) name += "/a";
    writer.CreateGroup(name);
    writer.Commit();
  }
  Net net = Make(kShared, 1);
  EXPECT_THAT(ErrorText<IoError>([&] { net.CopyTrainedLayersFromHDF5(file); }),
              HasSubstr("damaged: the groups in 'data' are more than 100 deep"));
}

TEST_F(WeightFilesTest, DoublesStayDoubles) {
  ExpectRoundTrip(kShared, /*in_double=*/true);
}

TEST_F(WeightFilesTest, NetsOfOtherParametersAreTold) {
  const std::string file = folder_.path("net.caffemodel.h5");
  {
    Hdf5Writer writer(file);
    writer.WriteFloats("data/one/0", Shape{3, 3}, std::vector<float>(9));
    writer.Commit();
  }
  Net net = Make(kShared, 1);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { net.CopyTrainedLayersFrom(file); }),
              AllOf(HasSubstr(file), HasSubstr("layer 'one'"),
                    HasSubstr("the file lacks parameter 1 of 2")));
  {
    Hdf5Writer writer(file);
    writer.WriteFloats("data/one/2", Shape{3}, std::vector<float>(3));
    writer.Commit();
  }
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { net.CopyTrainedLayersFrom(file); }),
              HasSubstr("the file has parameter 2, the net 2 parameter blob(s)"));
}

}  // namespace
}  // namespace caffe
