// Runs the programs that create databases, and checks exit status, output and databases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <opencv2/imgcodecs.hpp>
#include <set>
#include <tuple>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/run_program.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Outcome;

struct Record {
  std::string key;
  Datum datum;
};

class ConvertToolsTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_.path(name), std::ios::binary) << bytes;
  }

  Outcome Run(const std::string& program, const std::string& arguments,
              const std::string& before = "") const {
    return testing::RunProgram(folder_.path(), program + " " + arguments, before);
  }
  void ExpectSuccess(const std::string& program, const std::string& arguments,
                     const std::string& text) const {
    const Outcome outcome = Run(program, arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(text)) << arguments;
  }
  void ExpectFailure(const std::string& program, const std::string& arguments,
                     const std::string& text) const {
    const Outcome outcome = Run(program, arguments);
    EXPECT_EQ(outcome.status, 1) << arguments << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(text)) << arguments;
  }

  // The records in the order of the database.
  std::vector<Record> ReadDatabase(const std::string& name) const {
    const auto reader = data::OpenRecordReader(DataParameter::LMDB, folder_.path(name));
    std::vector<Record> records;
    data::Record view;
    for (bool found = reader->First(&view); found; found = reader->Next(&view)) {
      records.push_back({std::string(view.key), {}});
      EXPECT_TRUE(records.back().datum.ParseFromArray(view.value.data(),
                                                      static_cast<int>(view.value.size())));
    }
    return records;
  }
  std::vector<std::string> KeysOf(const std::string& name) const {
    std::vector<std::string> keys;
    for (const Record& record : ReadDatabase(name)) keys.push_back(record.key);
    return keys;
  }

  static cv::Mat Decoded(const std::string& bytes) {
    return cv::imdecode(std::vector<uint8_t>(bytes.begin(), bytes.end()), cv::IMREAD_COLOR);
  }

  testing::TemporaryFolder folder_;
};

std::string Idx(const std::vector<int>& dims, const std::string& values, int type = 8) {
  std::string bytes{'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (const int dim : dims) {
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(dim >> shift));
  }
  return bytes + values;
}

TEST_F(ConvertToolsTest, MnistFromPlainAndGzippedFiles) {
  const std::string images = Idx({3, 2, 2}, std::string("abcdefgh\xff\0\1\2", 12)),
                    labels = Idx({3}, "\7\1\11");
  Write("images", images);
  Write("labels", labels);
  for (const auto& [name, bytes] : {std::pair{"images.gz", images}, {"labels.gz", labels}}) {
    gzFile file = gzopen(folder_.path(name).c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  }
  ExpectSuccess("convert_mnist_data", "images labels plain", "Wrote 3 records");
  ExpectSuccess("convert_mnist_data", "--backend=lmdb images.gz labels.gz zipped",
                "Wrote 3 records");
  for (const std::string db : {"plain", "zipped"}) {
    const std::vector<Record> records = ReadDatabase(db);
    EXPECT_THAT(KeysOf(db), ElementsAre("00000000", "00000001", "00000002"));
    EXPECT_EQ(records[2].datum.data(), std::string("\xff\0\1\2", 4));
    EXPECT_EQ(records[2].datum.label(), 9);
    EXPECT_EQ(records[0].datum.channels(), 1);
    EXPECT_EQ(records[0].datum.height(), 2);
  }
}

TEST_F(ConvertToolsTest, MnistRefusesWrongFiles) {
  Write("images", Idx({2, 2, 2}, "abcdefgh"));
  Write("labels", Idx({2}, "\7\1"));
  Write("three", Idx({3}, "\7\1\2"));
  Write("short", Idx({2, 2, 2}, "abc"));
  Write("shorts", Idx({2, 2, 2}, "abcdefgh", 0x0b));
  Write("text", "hello, world");
  ExpectFailure("convert_mnist_data", "images labels", "Usage");
  ExpectFailure("convert_mnist_data", "none labels db", "none: cannot open");
  ExpectFailure("convert_mnist_data", "text labels db", "text: not an IDX file of images");
  ExpectFailure("convert_mnist_data", "shorts labels db", "shorts: not an IDX file of images");
  ExpectFailure("convert_mnist_data", "short labels db", "short: ends after 19 bytes");
  ExpectFailure("convert_mnist_data", "images three db",
                "images: holds 2 images, but three holds 3 labels");
  ExpectFailure("convert_mnist_data", "labels images db", "labels: not an IDX file of images");
  ExpectFailure("convert_mnist_data", "-backend sqlite images labels db",
                "unknown backend 'sqlite'");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("db")));
  ExpectSuccess("convert_mnist_data", "images labels db", "Wrote 2 records");
  ExpectFailure("convert_mnist_data", "images labels db", "already exists");
}

class ConvertImagesetTest : public ConvertToolsTest {
 protected:
  // a.png 4x6, "b c.png" 4x6, d.jpg 8x8, gray.png 4x6.
  void SetUp() override {
    std::filesystem::create_directory(folder_.path("images"));
    cv::Mat a(4, 6, CV_8UC3), gray(4, 6, CV_8UC1);
    for (int i = 0; i < 72; ++i) a.data[i] = static_cast<uint8_t>(3 * i);
    for (int i = 0; i < 24; ++i) gray.data[i] = static_cast<uint8_t>(10 * i);
    cv::imwrite(folder_.path("images/a.png"), a);
    cv::imwrite(folder_.path("images/b c.png"), a + cv::Scalar::all(1));
    cv::imwrite(folder_.path("images/gray.png"), gray);
    cv::imwrite(folder_.path("images/d.jpg"), cv::Mat(8, 8, CV_8UC3, cv::Scalar(10, 20, 30)));
    Write("list", "a.png 3\nb c.png -1\r\n\nd.jpg 5\n");
  }
  std::string Bytes(const std::string& name) const {
    std::ifstream file(folder_.path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(ConvertImagesetTest, WritesPlanesInListOrder) {
  ExpectSuccess("convert_imageset", "images/ list db", "Processed 3 files.");
  EXPECT_THAT(KeysOf("db"), ElementsAre("00000000_a.png", "00000001_b c.png", "00000002_d.jpg"));
  const Datum datum = ReadDatabase("db")[0].datum;
  EXPECT_EQ(datum.channels(), 3);
  EXPECT_EQ(datum.height(), 4);
  EXPECT_EQ(datum.width(), 6);
  EXPECT_EQ(datum.label(), 3);
  ASSERT_EQ(datum.data().size(), 72u);
  // Pixel p of channel c was byte 3 p + c of the image.
  for (int c = 0; c < 3; ++c) {
    for (int p = 0; p < 24; ++p)
      EXPECT_EQ(static_cast<uint8_t>(datum.data()[c * 24 + p]), 3 * (3 * p + c));
  }
  EXPECT_EQ(ReadDatabase("db")[1].datum.label(), -1);
}

TEST_F(ConvertImagesetTest, ResizesAndTurnsGray) {
  ExpectSuccess("convert_imageset",
                "-resize_height 5 -resize_width 7 -gray -check_size images/ list db",
                "Processed 3 files.");
  for (const Record& record : ReadDatabase("db")) {
    EXPECT_EQ(record.datum.channels(), 1);
    EXPECT_EQ(record.datum.height(), 5);
    EXPECT_EQ(record.datum.width(), 7);
    EXPECT_EQ(record.datum.data().size(), 35u);
  }
  ExpectFailure("convert_imageset", "-check_size images/ list other", "give --resize_height");
}

TEST_F(ConvertImagesetTest, KeepsCompressedFilesAsTheyAre) {
  ExpectSuccess("convert_imageset", "-encoded images/ list db", "Processed 3 files.");
  const std::vector<Record> records = ReadDatabase("db");
  EXPECT_TRUE(records[0].datum.encoded());
  EXPECT_EQ(records[0].datum.data(), Bytes("images/a.png"));
  EXPECT_EQ(records[2].datum.data(), Bytes("images/d.jpg"));
  ExpectSuccess("convert_imageset",
                "-encode_type png -resize_height 2 -resize_width 2 images/ list small",
                "assuming encoded=true");
  const cv::Mat small = Decoded(ReadDatabase("small").at(2).datum.data());
  EXPECT_EQ(small.rows, 2);
  EXPECT_EQ(small.at<cv::Vec3b>(0, 0)[0], 10);
  EXPECT_EQ(small.at<cv::Vec3b>(1, 1)[2], 30);
}

TEST_F(ConvertImagesetTest, ShufflesTheSameWayEachTime) {
  std::string list;
  for (int i = 0; i < 30; ++i) list += "a.png " + std::to_string(i) + "\n";
  Write("list", list);
  std::vector<std::vector<int>> orders;
  for (const std::string arguments :
       {"images/ list plain", "-shuffle images/ list one", "-shuffle images/ list two"}) {
    ExpectSuccess("convert_imageset", arguments, "Processed 30 files.");
    orders.emplace_back();
    const std::string db = arguments.substr(arguments.rfind(' ') + 1);
    for (const Record& record : ReadDatabase(db)) orders.back().push_back(record.datum.label());
  }
  EXPECT_EQ(orders[1], orders[2]);
  EXPECT_NE(orders[0], orders[1]);
  std::sort(orders[1].begin(), orders[1].end());
  EXPECT_EQ(orders[0], orders[1]);
}

TEST_F(ConvertImagesetTest, LeavesUnreadableFilesOutAndCountsThem) {
  Write("images/text.png", "no image");
  Write("list", "a.png 0\ntext.png 1\nnone.png 2\nd.jpg 3\n");
  const Outcome outcome = Run("convert_imageset", "images/ list db");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("Processed 2 files."), HasSubstr("2 of 4 images were left out"),
                    HasSubstr("images/text.png: cannot decode"), HasSubstr("images/none.png")));
  EXPECT_THAT(KeysOf("db"), ElementsAre("00000000_a.png", "00000003_d.jpg"));
  ExpectFailure("convert_imageset", "elsewhere/ list other", "none of the 4 images");
}

TEST_F(ConvertImagesetTest, NamesTheMalformedLine) {
  Write("bad", "a.png 0\na.png\n");
  ExpectFailure("convert_imageset", "images/ bad db", "bad:2: 'a.png' has no label");
  Write("bad", "a.png zero\n");
  ExpectFailure("convert_imageset", "images/ bad db", "bad:1: 'a.png zero' has no label");
  Write("bad", "\n");
  ExpectFailure("convert_imageset", "images/ bad db", "the list is empty");
  ExpectFailure("convert_imageset", "images/ none db", "none: cannot open");
  ExpectFailure("convert_imageset", "images/ list", "Usage");
  ExpectFailure("convert_imageset", "-encode_type xyz images/ list db2", "as 'xyz'");
}

TEST_F(ConvertImagesetTest, MeanOfADatabase) {
  Write("list", "a.png 0\nb c.png 0\n");
  ExpectSuccess("convert_imageset", "images/ list raw", "Processed 2 files.");
  ExpectSuccess("convert_imageset", "-encoded images/ list encoded", "Processed 2 files.");
  for (const std::string db : {"raw", "encoded"}) {
    ExpectSuccess("compute_image_mean", db + " mean", "Number of channels: 3");
    BlobProto mean;
    ReadBinaryProto(folder_.path("mean"), &mean);
    EXPECT_EQ(mean.num(), 1);
    EXPECT_EQ(mean.channels(), 3);
    EXPECT_EQ(mean.height(), 4);
    EXPECT_EQ(mean.width(), 6);
    ASSERT_EQ(mean.data_size(), 72);
    for (int c = 0; c < 3; ++c) {
      for (int p = 0; p < 24; ++p) EXPECT_EQ(mean.data(c * 24 + p), 3 * (3 * p + c) + 0.5f);
    }
  }
  // Channel 1 has the mean of 9 p + 3.5 over p = 0..23.
  ExpectSuccess("compute_image_mean", "raw", "mean_value channel [1]: 107");
  Write("list", "a.png 0\nd.jpg 0\n");
  ExpectSuccess("convert_imageset", "images/ list mixed", "Processed 2 files.");
  ExpectFailure("compute_image_mean", "mixed mean", "record 1");
  ExpectFailure("compute_image_mean", "none mean", "no LMDB database here");
  ExpectFailure("compute_image_mean", "", "Usage");
}

TEST_F(ConvertToolsTest, CifarBatches) {
  std::string batch;
  batch.reserve(10000 * 3073);
  for (int i = 0; i < 10000; ++i) {
    batch.push_back(static_cast<char>(i % 10));
    batch.append(3072, static_cast<char>(i % 251));
  }
  std::filesystem::create_directory(folder_.path("in"));
  for (int i = 1; i <= 5; ++i) Write("in/data_batch_" + std::to_string(i) + ".bin", batch);
  Write("in/test_batch.bin", batch.substr(0, 3073 * 7 + 5));
  ExpectFailure("convert_cifar_data", "in . lmdb", "test_batch.bin: ends within record 7");
  std::filesystem::remove_all(folder_.path("cifar10_train_lmdb"));
  std::filesystem::remove_all(folder_.path("cifar10_test_lmdb"));
  Write("in/test_batch.bin", batch);
  ExpectSuccess("convert_cifar_data", "in . lmdb", "Writing Testing data");
  const std::vector<Record> train = ReadDatabase("cifar10_train_lmdb");
  ASSERT_EQ(train.size(), 50000u);
  EXPECT_EQ(ReadDatabase("cifar10_test_lmdb").size(), 10000u);
  EXPECT_EQ(train.front().key, "00000");
  EXPECT_EQ(train.back().key, "49999");
  const Datum& datum = train.back().datum;
  EXPECT_EQ(datum.label(), 9);
  EXPECT_EQ(datum.channels(), 3);
  EXPECT_EQ(datum.height(), 32);
  EXPECT_EQ(datum.data(), std::string(3072, static_cast<char>(9999 % 251)));
  ExpectFailure("convert_cifar_data", "in . lmdb", "already exists");
  ExpectFailure("convert_cifar_data", "none . leveldb", "none");
  ExpectFailure("convert_cifar_data", "in .", "Usage");
}

// Converters that are stopped in the middle, each by several signals. The simulated disk raises
// them at one operation, so that it always happens at the same moment.
class StoppedConverterTest : public ConvertToolsTest,
                             public ::testing::WithParamInterface<std::tuple<std::string, int>> {
 protected:
  // Enough records for several commits.
  void SetUp() override {
    constexpr int kItems = 5'000;
    Write("images", Idx({kItems, 1, 1}, std::string(kItems, 'x')));
    Write("labels", Idx({kItems}, std::string(kItems, '\1')));
    cv::imwrite(folder_.path("a.png"), cv::Mat(16, 16, CV_8UC3, cv::Scalar(1, 2, 3)));
    std::string list;
    for (int i = 0; i < kItems; ++i) list += "a.png 1\n";
    Write("list", list);
    std::filesystem::create_directory(folder_.path("cifar"));
    Write("cifar/data_batch_1.bin", std::string(3073 * 10'000, 'x'));
    for (const char* name :
         {"data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
      std::filesystem::create_symlink("data_batch_1.bin",
                                      folder_.path(StrCat("cifar/", name, ".bin")));
    }
  }

  // `operation` has the form of CAFFE_DISK_FAULT.
  Outcome RunAndStop(const std::string& command, const std::string& operation, int signal) const {
    // Tests that are started in the background ignore SIGINT.
    return Run(command, "",
               StrCat("exec env --default-signal LD_PRELOAD=", Disk(),
                      " CAFFE_DISK_LOG=/dev/null CAFFE_DISK_FOLDER='", folder_.path(),
                      "' CAFFE_DISK_FAULT=", operation, ":signal", signal));
  }
  static bool HasDisk() { return std::filesystem::exists(Disk()); }
  bool HasPartial() const {
    const std::filesystem::recursive_directory_iterator files(folder_.path());
    return std::any_of(begin(files), end(files), [](const auto& file) {
      return file.path().extension() == ".partial" && exists(file.path() / "data.mdb");
    });
  }
  std::set<std::string> Files() const {
    std::set<std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
      files.insert(file.path().filename());
    }
    return files;
  }

  static std::string Disk() { return testing::BuildPath("lib/libcaffe_test_disk.so"); }
};

INSTANTIATE_TEST_SUITE_P(
    All, StoppedConverterTest,
    ::testing::Combine(::testing::Values("convert_mnist_data images labels db",
                                         "convert_imageset --encoded --resize_width=8 "
                                         "--resize_height=8 ./ list db",
                                         "convert_annoset ./ list db",
                                         "convert_cifar_data cifar . lmdb"),
                       ::testing::Values(SIGINT, SIGTERM, SIGKILL)));

TEST_P(StoppedConverterTest, LeavesNothingUnderTheFinalName) {
  const auto& [command, signal] = GetParam();
  if (!HasDisk()) GTEST_SKIP() << "sanitizers build no simulated disk";
  const std::set<std::string> before = Files();
  const Outcome outcome = RunAndStop(command, "fsync:2", signal);  // in the second commit
  EXPECT_EQ(outcome.signal, signal) << outcome.status << outcome.output;
  const std::set<std::string> left = Files();
  if (signal != SIGKILL) {
    EXPECT_EQ(left, before);
    return;
  }
  for (const std::string& name : left) {
    EXPECT_TRUE(before.count(name) > 0 || name.ends_with(".partial")) << name;
  }
  // The next run starts again.
  EXPECT_TRUE(HasPartial());
  Write("images", Idx({1, 1, 1}, "x"));
  Write("labels", Idx({1}, "\1"));
  Write("list", "a.png 1\n");
  Write("cifar/data_batch_1.bin", std::string(3073, 'x'));
  EXPECT_EQ(Run(command, "").status, 0);
  EXPECT_FALSE(HasPartial());
}

TEST_F(StoppedConverterTest, AMeanThatIsStoppedLeavesNoFile) {
  if (!HasDisk()) GTEST_SKIP() << "sanitizers build no simulated disk";
  ExpectSuccess("convert_mnist_data", "images labels db", "Wrote");
  // At the opening of the database's lock file, before the first record.
  const Outcome outcome = RunAndStop("compute_image_mean db mean.binaryproto", "open:1", SIGTERM);
  EXPECT_EQ(outcome.signal, SIGTERM) << outcome.status << outcome.output;
  EXPECT_EQ(Files().count("mean.binaryproto"), 0u);
}

// A limit on the file size stands in for a full disk.
TEST_F(StoppedConverterTest, AFullDiskLeavesNothing) {
  const std::set<std::string> before = Files();
  const Outcome outcome =
      Run("convert_mnist_data", "images labels db", "trap '' XFSZ; ulimit -f 40;");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("cannot write records"));
  EXPECT_EQ(Files(), before);
}

}  // namespace
}  // namespace caffe
