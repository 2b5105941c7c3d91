#include "caffe/plugin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string PathOf(const std::string& plugin) {
  return testing::BuildPath("lib/test_plugins/" + plugin + ".so");
}

// Each refusal registers nothing.
void ExpectRefused(const std::string& file, const std::string& type,
                   const ::testing::Matcher<std::string>& message) {
  for (int i = 0; i < 2; ++i) {  // a second attempt finds the library in memory
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { LoadPlugin(file); }), message) << i;
  }
  EXPECT_FALSE(LayerRegistry::IsRegistered(type));
}

TEST(PluginTest, RegistersItsLayers) {
  ASSERT_FALSE(LayerRegistry::IsRegistered("Doubling"));
  const PluginInfo info = LoadPlugin(PathOf("good"));
  EXPECT_EQ(info.name, "good");
  EXPECT_EQ(info.version, "1.5");
  EXPECT_THAT(info.layer_types, ElementsAre("Doubling"));
  EXPECT_TRUE(LayerRegistry::IsRegistered("Doubling"));
  LayerParameter param;
  param.set_type("Doubling");
  EXPECT_EQ(LayerRegistry::CreateLayer(param)->type(), "Doubling");
  EXPECT_THAT(LoadPlugin(PathOf("good")).layer_types, ElementsAre("Doubling"));
  EXPECT_EQ(LoadedPlugins().size(), 1u);
  ExpectRefused(PathOf("again"), "Again",
                AllOf(HasSubstr("again.so"), HasSubstr("layer type 'Doubling' is taken")));
}

TEST(PluginTest, WithATypeThatIsTakenAddsNothing) {
  ExpectRefused(PathOf("taken"), "New", HasSubstr("layer type 'ReLU' is taken"));
}

TEST(PluginTest, OfAnotherInterfaceIsRefused) {
  ExpectRefused(PathOf("other_interface"), "Other",
                AllOf(HasSubstr("was compiled for plug-in interface 99"),
                      HasSubstr("compile it again with this version's headers")));
}

TEST(PluginTest, WithoutADescriptorIsRefused) {
  ExpectRefused(PathOf("nameless"), "Nameless", HasSubstr("has no symbol caffe_plugin"));
}

TEST(PluginTest, ThatThrowsWhileLoadingIsRefused) {
  ExpectRefused(PathOf("throwing"), "Throwing",
                AllOf(HasSubstr("threw while it was loaded"), HasSubstr("no licence was found")));
  LoadPlugin(PathOf("good"));  // the loader still works
}

TEST(PluginTest, MustBeALibrary) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path("text.so")) << "This is not a library.";
  std::ofstream(folder.path("empty.so"));
  for (const char* name : {"text.so", "empty.so"}) {
    ExpectRefused(folder.path(name), "None",
                  AllOf(HasSubstr("cannot be loaded"), HasSubstr("-shared -fPIC")));
  }
  ExpectRefused(folder.path("missing.so"), "None", HasSubstr("no such file"));
  ExpectRefused("libno_such_plugin.so", "None", HasSubstr("finds no library of this name"));
  ExpectRefused("", "None", HasSubstr("name is empty"));
}

}  // namespace
}  // namespace caffe
