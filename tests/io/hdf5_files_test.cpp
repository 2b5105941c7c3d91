#include "caffe/io/hdf5_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using testing::TemporaryFolder;

std::string Format(const std::string& file) {
  return testing::SourcePath("tests/golden/formats/" + file);
}

// Skips tests in a build without HDF5 instead of failing.
class Hdf5FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      Hdf5Writer probe(folder_ / "probe.h5");
    } catch (const Unsupported& error) {
      GTEST_SKIP() << error.what();
    }
  }

  TemporaryFolder folder_;
};

TEST_F(Hdf5FilesTest, ReadsBackWhatItWrites) {
  const std::string path = folder_ / "a.h5";
  Hdf5Writer writer(path);
  writer.CreateGroup("history");
  writer.CreateGroup("history");
  writer.WriteFloats("/data/inception/1x1/0", Shape{2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  writer.WriteDoubles("d", Shape{1}, std::vector<double>{0.1});
  writer.WriteFloats("scalar", Shape{}, std::vector<float>{7});
  writer.WriteFloats("nothing", Shape{0, 4}, {});
  writer.WriteInteger("iter", 12);
  writer.WriteInteger("big", int64_t{1} << 40);
  writer.WriteString("learned_net", "a_iter_12.caffemodel.h5");
  writer.Commit();

  const Hdf5Reader reader(path);
  EXPECT_EQ(reader.ShapeOf("data/inception/1x1/0"), (Shape{2, 3}));
  EXPECT_THAT(reader.ReadFloats("/data/inception/1x1/0"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(reader.ReadDoubles("d"), ElementsAre(0.1));
  EXPECT_THAT(reader.ReadFloats("d"), ElementsAre(0.1f));
  EXPECT_THAT(reader.ReadFloats("scalar"), ElementsAre(7));
  EXPECT_THAT(reader.ReadFloats("nothing"), SizeIs(0));
  EXPECT_EQ(reader.ReadInteger("iter"), 12);
  EXPECT_THAT(reader.ReadFloats("iter"), ElementsAre(12));
  EXPECT_EQ(reader.ReadInteger("big"), int64_t{1} << 40);
  EXPECT_EQ(reader.ReadString("learned_net"), "a_iter_12.caffemodel.h5");
  EXPECT_TRUE(reader.IsGroup("history"));
  EXPECT_FALSE(reader.IsGroup("iter"));
  EXPECT_FALSE(reader.Contains("data/other/0"));
  EXPECT_THAT(reader.LinksOf("/data"), ElementsAre("inception"));
}

TEST_F(Hdf5FilesTest, ListsNumbersInNumericOrderBeforeNames) {
  Hdf5Writer writer(folder_ / "a.h5");
  for (const char* name : {"10", "b", "9", "a", "0"}) writer.WriteInteger(name, 1);
  writer.Commit();
  EXPECT_THAT(Hdf5Reader(folder_ / "a.h5").LinksOf("/"), ElementsAre("0", "9", "10", "a", "b"));
}

TEST_F(Hdf5FilesTest, LeavesNothingBehindWithoutCommit) {
  {
    Hdf5Writer writer(folder_ / "a.h5");
    writer.WriteInteger("iter", 1);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(Hdf5FilesTest, NamesFileAndDatasetInErrors) {
  EXPECT_EQ(ErrorText<IoError>([] { Hdf5Reader("/nowhere/a.h5"); }),
            "/nowhere/a.h5: cannot open: No such file or directory");
  WriteFileAtomically(folder_ / "text.h5", std::string_view("not this"));
  EXPECT_THAT(ErrorText<IoError>([&] { Hdf5Reader(folder_ / "text.h5"); }),
              HasSubstr("text.h5: not an HDF5 file"));
  EXPECT_THAT(ErrorText<IoError>([&] { Hdf5Writer(folder_ / "no/a.h5"); }),
              AllOf(HasSubstr("no/a.h5: cannot create: "), HasSubstr("No such file")));

  Hdf5Writer writer(folder_ / "a.h5");
  writer.WriteFloats("group/pair", Shape{2}, std::vector<float>{1, 2});
  writer.WriteString("word", "yes");
  EXPECT_THAT(ErrorText<IoError>([&] { writer.WriteInteger("word", 1); }),
              AllOf(HasSubstr("a.h5: 'word': cannot write: "), HasSubstr("exist")));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] {
                writer.WriteFloats("x", Shape{4, 2}, std::vector<float>{1, 2});
              }),
              HasSubstr("'x': got 2 values for shape 4x2, which needs 8"));
  writer.Commit();
  const Hdf5Reader reader(folder_ / "a.h5");
  EXPECT_THAT(ErrorText<IoError>([&] { reader.ReadFloats("group/other"); }),
              HasSubstr("a.h5: 'group/other': no such dataset"));
  EXPECT_THAT(ErrorText<IoError>([&] { reader.ReadFloats("group"); }),
              HasSubstr("'group': is a group, not a dataset"));
  EXPECT_THAT(ErrorText<IoError>([&] { reader.ReadInteger("group/pair"); }),
              HasSubstr("has 2 values; exactly 1"));
  EXPECT_THAT(ErrorText<IoError>([&] { reader.ReadFloats("word"); }),
              HasSubstr("neither floating-point numbers nor integers"));
  EXPECT_THAT(ErrorText<IoError>([&] { reader.ReadString("group/pair"); }),
              HasSubstr("is not a string"));
  EXPECT_THAT(ErrorText<IoError>([&] { reader.LinksOf("word"); }), HasSubstr("no such group"));
}

// A limit on the file size stands in for a full disk.
TEST_F(Hdf5FilesTest, AFileThatDoesNotFitLeavesTheLibraryUsable) {
  const std::vector<float> values(100'000, 1);
  const auto write = [&](const std::string& path) {
    Hdf5Writer writer(path);
    writer.WriteFloats("small", Shape{10}, std::span(values).first(10));
    writer.WriteFloats("large", Shape{100'000}, values);
    writer.Commit();
  };
  rlimit unlimited;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t bytes : {100, 3000, 100'000}) {
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = unlimited.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string text = ErrorText<IoError>([&] { write(folder_ / "a.h5"); });
    ::setrlimit(RLIMIT_FSIZE, &unlimited);
    EXPECT_THAT(text, AllOf(HasSubstr("a.h5: "), HasSubstr("cannot write: File too large; raise")));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "a.h5")) << bytes;
  }
  std::signal(SIGXFSZ, old_handler);
  write(folder_ / "a.h5");
  EXPECT_EQ(Hdf5Reader(folder_ / "a.h5").ReadFloats("large"), values);
}

TEST_F(Hdf5FilesTest, ReadsWeightsThatBvlcCaffeWrote) {
  const Hdf5Reader reader(Format("adam_hdf5_iter_3.caffemodel.h5"));
  int blobs = 0;
  for (const std::string& layer : reader.LinksOf("data")) {
    const std::string group = "data/" + layer;
    if (!reader.IsGroup(group)) continue;
    for (const std::string& blob : reader.LinksOf(group)) {
      const std::string name = group + "/" + blob;
      EXPECT_THAT(reader.ReadFloats(name), SizeIs(reader.ShapeOf(name).count()));
      ++blobs;
    }
  }
  EXPECT_GT(blobs, 0);
}

TEST_F(Hdf5FilesTest, ReadsSolverStateThatBvlcCaffeWrote) {
  const Hdf5Reader reader(Format("adam_hdf5_iter_3.solverstate.h5"));
  EXPECT_EQ(reader.ReadInteger("iter"), 3);
  EXPECT_EQ(reader.ReadInteger("current_step"), 0);
  EXPECT_THAT(reader.ReadString("learned_net"), HasSubstr("_iter_3.caffemodel.h5"));
  const std::vector<std::string> history = reader.LinksOf("history");
  ASSERT_FALSE(history.empty());
  EXPECT_EQ(history[0], "0");
  EXPECT_THAT(reader.ReadFloats("history/0"), SizeIs(reader.ShapeOf("history/0").count()));
}

// The processes that this one has started.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream list(task.path() / "children");
    for (pid_t child; list >> child;) children.push_back(child);
  }
  return children;
}

// The library crashes on some damaged files; which ones depends on its version, so an external
// signal stands in for that.
TEST_F(Hdf5FilesTest, ACrashOfTheLibraryIsAnError) {
  const std::string path = folder_ / "a.h5";
  Hdf5Writer writer(path);
  writer.WriteInteger("iter", 7);
  writer.Commit();
  const Hdf5Reader reader(path), other(path);
  ASSERT_THAT(Children(), SizeIs(2));
  kill(Children()[0], SIGSEGV);
#ifdef __SANITIZE_ADDRESS__
  const std::string signal;  // the sanitizer takes it
#else
  const std::string signal = " (Segm";
#endif
  EXPECT_THAT(ErrorText<IoError>([&] { reader.ReadInteger("iter"); }),
              AllOf(HasSubstr("a.h5: damaged: the HDF5 library crashes on it" + signal),
                    HasSubstr("create the file again")));
  EXPECT_THROW(reader.Contains("iter"), IoError);
  EXPECT_EQ(other.ReadInteger("iter"), 7);
  kill(Children()[0], SIGPROF);
  EXPECT_THAT(ErrorText<IoError>([&] { other.ReadInteger("iter"); }),
              HasSubstr("a.h5: damaged: the HDF5 library does not come to an end with it"));
  EXPECT_THAT(Children(), SizeIs(0));
}

// Linux kills the reader when memory runs short.
TEST_F(Hdf5FilesTest, AKilledReaderSaysNothingAgainstTheFile) {
  Hdf5Writer writer(folder_ / "a.h5");
  writer.WriteInteger("iter", 7);
  writer.Commit();
  const Hdf5Reader reader(folder_ / "a.h5");
  kill(Children().at(0), SIGKILL);
  EXPECT_THAT(ErrorText<IoError>([&] { reader.ReadInteger("iter"); }),
              AllOf(HasSubstr("a.h5: cannot be read: the process that reads it was killed"),
                    Not(HasSubstr("damaged:"))));
}

TEST_F(Hdf5FilesTest, AReaderOutlivesWhatEndsTheTraining) {
  Hdf5Writer writer(folder_ / "a.h5");
  writer.WriteInteger("iter", 7);
  writer.Commit();
  const Hdf5Reader reader(folder_ / "a.h5");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) kill(Children().at(0), signal);
  EXPECT_EQ(reader.ReadInteger("iter"), 7);
}

TEST_F(Hdf5FilesTest, ReadsDatasetsThatTakeManyParts) {
  std::vector<double> values(3'000'000);
  std::iota(values.begin(), values.end(), 0);
  Hdf5Writer writer(folder_ / "a.h5");
  writer.WriteDoubles("rows", Shape{100'000, 30}, values);
  writer.WriteDoubles("row", Shape{1, 3'000'000}, values);
  writer.Commit();
  const Hdf5Reader reader(folder_ / "a.h5");
  EXPECT_EQ(reader.ReadDoubles("rows"), values);
  EXPECT_EQ(reader.ReadDoubles("row"), values);
}

}  // namespace
}  // namespace caffe
