#include "caffe/io/binary_format.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tests/support/error_text.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

NetParameter SmallNet() {
  NetParameter net;
  net.set_name("small");
  BlobProto* blob = net.add_layer()->add_blobs();
  blob->mutable_shape()->add_dim(1000);
  for (int i = 0; i < 1000; ++i) blob->add_data(static_cast<float>(i));
  return net;
}

std::string ReadError(const std::string& path) {
  NetParameter net;
  return ErrorText<IoError>([&] { ReadBinaryProto(path, &net); });
}

TEST(BinaryFormatTest, ReadsBackWhatItWrites) {
  const TemporaryFolder folder;
  const NetParameter net = SmallNet();
  WriteBinaryProto(folder / "net.caffemodel", net);
  NetParameter copy;
  ReadBinaryProto(folder / "net.caffemodel", &copy);
  EXPECT_EQ(copy.SerializeAsString(), net.SerializeAsString());
}

TEST(BinaryFormatTest, NamesTheFileThatIsMissing) {
  EXPECT_EQ(ReadError("/nowhere/net.caffemodel"),
            "/nowhere/net.caffemodel: cannot open: No such file or directory");
}

TEST(BinaryFormatTest, RefusesFoldersAndEmptyFiles) {
  const TemporaryFolder folder;
  EXPECT_THAT(ReadError(folder.path()), HasSubstr(folder.path()));
  WriteFileAtomically(folder / "empty", std::string_view());
  EXPECT_THAT(ReadError(folder / "empty"), HasSubstr("not a NetParameter: the file is empty"));
}

TEST(BinaryFormatTest, RefusesATruncatedFileAndNamesItsSize) {
  const TemporaryFolder folder;
  const std::string bytes = SmallNet().SerializeAsString();
  WriteFileAtomically(folder / "cut", std::string_view(bytes).substr(0, 3000));
  const std::string error = ReadError(folder / "cut");
  EXPECT_THAT(error, HasSubstr("not a NetParameter or truncated"));
  EXPECT_THAT(error, HasSubstr("3000 bytes"));
}

TEST(BinaryFormatTest, RecognisesHdf5AndTextFiles) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "a", std::string_view("\x89HDF\r\n\x1a\n\0\0\0", 11));
  EXPECT_THAT(ReadError(folder / "a"), HasSubstr("an HDF5 file; let its name end in .h5"));
  WriteFileAtomically(folder / "b", std::string_view("name: 'net'\n"));
  EXPECT_THAT(ReadError(folder / "b"), HasSubstr("but a text file"));
}

TEST(BinaryFormatTest, ReadsSolverStateThatBvlcCaffeWrote) {
  SolverState state;
  ReadBinaryProto(testing::SourcePath("tests/golden/formats/adam_binary_iter_3.solverstate"),
                  &state);
  EXPECT_EQ(state.iter(), 3);
  EXPECT_THAT(state.learned_net(), HasSubstr("_iter_3.caffemodel"));
  EXPECT_GT(state.history_size(), 0);
}

TEST(BinaryFormatTest, NamesMissingRequiredFields) {
  const TemporaryFolder folder;
  NetParameter net;
  net.add_layer()->mutable_clip_param()->set_min(0);
  WriteBinaryProto(folder / "net", net);
  EXPECT_THAT(ReadError(folder / "net"), HasSubstr("clip_param.max"));
}

}  // namespace
}  // namespace caffe
