// Each layer type has a description, as the registry and the schema have it.
#include "caffe/layer_catalogue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/layer_factory.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;
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

}  // namespace
}  // namespace caffe
