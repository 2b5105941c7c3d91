#include "caffe/solvers/content_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "caffe/io/atomic_file.hpp"
#include "caffe/io/content_mark.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

class ContentFactsTest : public ::testing::Test {
 protected:
  std::string FactOf(const std::string& net_text) const {
    const auto net = testing::NetOf(net_text);
    return FactAboutContent({}, {net.get()}).text;
  }
  const testing::TemporaryFolder folder_;
};

TEST_F(ContentFactsTest, TellsFilesApartWhereverALayerNamesThem) {
  const std::string list = folder_.path("list.txt");
  const std::string text =
      "layer { name: 'p' type: 'DummyData' top: 'x' transform_param { mean_file: '" + list +
      "' } dummy_data_param { shape { dim: 1 } } }";
  EXPECT_EQ(FactOf(text), "");  // the file does not exist
  WriteFileAtomically(list, "one");
  const std::string one = FactOf(text);
  EXPECT_THAT(one, HasSubstr("layer 'p': mean_file '" + list + "' has 3 bytes, their hash "));
  WriteFileAtomically(list, "two");
  EXPECT_NE(FactOf(text), one);
}

// Reads the list like HDF5Data: one written by Notepad, with blanks and other line ends.
TEST_F(ContentFactsTest, TellsApartTheFilesOfAList) {
  const std::string list = folder_.path("list.txt"), first = folder_.path("first.h5"),
                    last = folder_.path("last.h5");
  WriteFileAtomically(list, "\xef\xbb\xbf" + first + "\r\n\r\n" + last + " \r\n");
  WriteFileAtomically(first, "one");
  WriteFileAtomically(last, "three");
  const std::string fact = FactOf(
      "layer { name: 'p' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 1 } } "
      "hdf5_data_param { source: '" +
      list + "' } }");
  EXPECT_THAT(fact, HasSubstr("layer 'p': file '" + first + "' has 3 bytes"));
  EXPECT_THAT(fact, HasSubstr("layer 'p': file '" + last + "' has 5 bytes"));
}

TEST_F(ContentFactsTest, LeavesOutFilesThatAreCalledLikeABlob) {
  const std::string name = folder_.path("x");
  WriteFileAtomically(name, "a log");
  EXPECT_EQ(FactOf("layer { name: '" + name + "' type: 'DummyData' top: '" + name +
                   "' dummy_data_param { shape { dim: 1 } } }"),
            "");
}

// The samples include the middle.
TEST_F(ContentFactsTest, SamplesLargeFiles) {
  const std::string file = folder_.path("large");
  std::ofstream(file) << "begin";
  std::filesystem::resize_file(file, uint64_t{200} << 20);
  const ContentMark before = SampledMarkOfFile(file);
  EXPECT_EQ(before.bytes, uint64_t{200} << 20);
  EXPECT_EQ(SampledMarkOfFile(file), before);
  {
    std::fstream stream(file, std::ios::in | std::ios::out);
    stream.seekp((100 << 20) - (1 << 20));
    stream << std::string(size_t{2} << 20, 'x');
  }
  EXPECT_FALSE(SampledMarkOfFile(file) == before);
}

}  // namespace
}  // namespace caffe
