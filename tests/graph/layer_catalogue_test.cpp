// Each layer type has a description that agrees with the registry and the schema.
#include "caffe/layer_catalogue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "caffe/layer_factory.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(LayerCatalogueTest, DescribesEveryType) {
  const std::vector<std::string> types = LayerRegistry::LayerTypeList();
  EXPECT_GT(types.size(), 100u);
  for (const std::string& type : types) {
    const std::string text = FormatLayerType(type);
    EXPECT_THAT(text, StartsWith("type: \"" + type + "\"\n"));
    for (const LayerOptions& options : OptionsOfLayer(type))
      EXPECT_THAT(text, HasSubstr("\n" + options.field + " {\n")) << type;
    EXPECT_THAT("\n" + FormatLayerTypes(), HasSubstr("\n" + type)) << type;
  }
}

TEST(LayerCatalogueTest, TypesThatAreRefusedAreMarked) {
  EXPECT_THAT(FormatLayerTypes(), HasSubstr("trt_param  (not supported)\n"));
  EXPECT_THAT(FormatLayerType("TRT"), HasSubstr("\nNot supported: "));
  EXPECT_THAT(FormatLayerType("ReLU"), Not(HasSubstr("ot supported")));
}

// Zero is a separate class, so a reader must not believe that it is ignored.
TEST(LayerCatalogueTest, FieldsWithoutADefaultShowNone) {
  std::map<std::string, std::string> defaults;
  for (const LayerOptions& options : OptionsOfLayer("Accuracy")) {
    for (const LayerOption& option : options.options) defaults[option.name] = option.default_value;
  }
  EXPECT_EQ(defaults.at("ignore_label"), "");
  EXPECT_EQ(defaults.at("top_k"), "1");
}

}  // namespace
}  // namespace caffe
