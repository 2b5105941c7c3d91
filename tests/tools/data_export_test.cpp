// Runs caffe data export, and checks the folders that it writes.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <opencv2/imgcodecs.hpp>
#include <random>
#include <set>
#include <sstream>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/data/readers/record_writer.hpp"
#include "caffe/error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/run_program.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Outcome;

class DataExportTest : public ::testing::Test {
 protected:
  using Records = std::vector<std::pair<std::string, std::string>>;

  void MakeDatabase(const Records& records, DataParameter::DB backend = DataParameter::LMDB) const {
    const auto writer = data::CreateRecordWriter(backend, folder_.path("db"));
    for (const auto& [key, value] : records) writer->Put(key, value);
    writer->Finish();
  }
  static std::string Encoded(const std::string& file, int label) {
    Datum datum;
    datum.set_encoded(true);
    datum.set_data(file);
    datum.set_label(label);
    return datum.SerializeAsString();
  }
  // Its bytes are 0, 1, 2 ...
  static std::string Raw(int channels, int height, int width, int label) {
    Datum datum;
    datum.set_channels(channels);
    datum.set_height(height);
    datum.set_width(width);
    datum.set_label(label);
    for (int i = 0; i < channels * height * width; ++i) {
      datum.mutable_data()->push_back(static_cast<char>(i));
    }
    return datum.SerializeAsString();
  }
  static std::string Image(const std::string& extension) {
    std::vector<uint8_t> bytes;
    cv::imencode(extension, cv::Mat(20, 30, CV_8UC3, cv::Scalar(1, 2, 3)), bytes);
    return {bytes.begin(), bytes.end()};
  }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_.path(name), std::ios::binary) << bytes;
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path(name), std::ios::binary).rdbuf();
    return text.str();
  }
  // Paths below the test's folder, without the database.
  std::set<std::string> Files() const {
    std::set<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      const std::string name = entry.path().lexically_relative(folder_.path()).string();
      if (!name.starts_with("db")) files.insert(name);
    }
    return files;
  }

  Outcome Run(const std::string& arguments, const std::string& before = "") const {
    return testing::RunProgram(folder_.path(), "caffe " + arguments, before);
  }
  std::string Export(const std::string& arguments, int status = 0) const {
    const Outcome outcome = Run("data export " + arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
    return outcome.output;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(DataExportTest, WritesEncodedImagesByteForByte) {
  const std::string png = Image(".png"), jpeg = Image(".jpg");
  for (const auto backend : {DataParameter::LMDB, DataParameter::LEVELDB}) {
    fs::remove_all(folder_.path("db"));
    fs::remove_all(folder_.path("out"));
    MakeDatabase({{"00000000_a.png", Encoded(png, 3)},
                  {"00000001_b.JPEG", Encoded(jpeg, 3)},
                  {"00000002_c", Encoded(jpeg, 12)},
                  {"00000003_d.png", Encoded(jpeg, -1)}},
                 backend);
    EXPECT_THAT(Export("db out"), HasSubstr("db -> out: 4 images in 3 folders"));
    // Numbers are as wide as the largest one, so that their order is that of the labels.
    EXPECT_THAT(Files(), ElementsAre("out", "out/-1", "out/-1/00000003_d.png.jpg", "out/03",
                                     "out/03/00000000_a.png", "out/03/00000001_b.JPEG", "out/12",
                                     "out/12/00000002_c.jpg"));
    EXPECT_EQ(Read("out/03/00000000_a.png"), png);
    EXPECT_EQ(Read("out/12/00000002_c.jpg"), jpeg);
  }
}

TEST_F(DataExportTest, WritesRawImagesAsPng) {
  MakeDatabase({{"color", Raw(3, 2, 4, 0)}, {"gray", Raw(1, 2, 4, 1)}});
  Export("db out");
  const cv::Mat color = cv::imread(folder_.path("out/0/color.png"), cv::IMREAD_UNCHANGED);
  ASSERT_EQ(color.type(), CV_8UC3);
  EXPECT_EQ(color.size(), cv::Size(4, 2));
  EXPECT_EQ(color.at<cv::Vec3b>(1, 3), cv::Vec3b(7, 15, 23));
  const cv::Mat gray = cv::imread(folder_.path("out/1/gray.png"), cv::IMREAD_UNCHANGED);
  ASSERT_EQ(gray.type(), CV_8UC1);
  EXPECT_EQ(gray.at<uint8_t>(1, 3), 7);
}

TEST_F(DataExportTest, IsTheReverseOfImport) {
  for (const char* name : {"cat/0.png", "cat/1.png", "dog/2.png", "empty/x"}) {
    fs::create_directories(fs::path(folder_.path(std::string("photos/") + name)).parent_path());
    if (std::string(name) != "empty/x") Write(std::string("photos/") + name, Image(".png"));
  }
  ASSERT_EQ(Run("data import photos db").status, 0);
  EXPECT_THAT(Export("db out --labels=db/labels.txt"), HasSubstr("3 images in 3 folders"));
  EXPECT_EQ(Read("out/cat/00000001_cat_1.png"), Image(".png"));
  EXPECT_TRUE(fs::is_empty(folder_.path("out/empty")));
  EXPECT_THAT(Run("data import out db2").output,
              AllOf(HasSubstr("0 cat: 2"), HasSubstr("1 dog: 1"), HasSubstr("2 empty: 0")));
}

TEST_F(DataExportTest, NoNameLeavesTheFolder) {
  const std::string png = Image(".png");
  MakeDatabase({{"../../up.png", Encoded(png, 0)},
                {"..", Encoded(png, 0)},
                {"/etc/passwd", Encoded(png, 0)},
                {"a/../../b.png", Encoded(png, 1)},
                {std::string("zero\0.png", 9), Encoded(png, 1)},
                {std::string("\x1b[31m.png"), Encoded(png, 1)},
                {std::string(400, 'k'), Encoded(png, 1)},
                {std::string(400, 'k') + "x.png", Encoded(png, 1)}});
  Write("names", "../../outside\n..\n");
  EXPECT_THAT(Export("db out --labels=names"), HasSubstr("8 images in 2 folders"));
  const std::string cut(255 - 16 - 4, 'k');
  EXPECT_THAT(Files(),
              ElementsAre("names", "out", "out/_.", "out/_./_[31m.png", "out/_./a_.._.._b.png",
                          "out/_./" + cut + ".png", "out/_./" + cut + "_2.png", "out/_./zero_.png",
                          "out/_._.._outside", "out/_._.._outside/_..png",
                          "out/_._.._outside/_._.._up.png", "out/_._.._outside/_etc_passwd.png"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 3);
}

TEST_F(DataExportTest, EqualNamesGetNumbers) {
  const std::string one = Image(".png"), other = Image(".jpg");
  MakeDatabase({{"a/b", Encoded(one, 0)}, {"a\\b", Encoded(one, 0)}, {"a_b", Encoded(other, 0)}});
  Export("db out");
  EXPECT_EQ(Read("out/0/a_b.png"), one);
  EXPECT_EQ(Read("out/0/a_b_2.png"), one);
  EXPECT_EQ(Read("out/0/a_b.jpg"), other);
}

TEST_F(DataExportTest, NamesRecordsThatItLeavesOut) {
  Datum floats, pose, boxes;
  floats.ParseFromString(Raw(3, 1, 1, 0));
  floats.clear_data();
  for (int i = 0; i < 3; ++i) floats.add_float_data(0.5F);
  pose.ParseFromString(Raw(1, 2, 2, 0));
  pose.add_float_data(0.5F);
  AnnotatedDatum annotated;
  annotated.set_type(AnnotatedDatum::BBOX);
  annotated.mutable_datum()->ParseFromString(Raw(3, 2, 2, 0));
  MakeDatabase({{"boxes", annotated.SerializeAsString()},
                {"floats", floats.SerializeAsString()},
                {"good", Raw(3, 2, 2, 0)},
                {"pose", pose.SerializeAsString()},
                {"text", "hello, world"},
                {"torn", Encoded(Image(".jpg").substr(0, 300), 0)},
                {"two", Raw(2, 2, 2, 0)}});
  EXPECT_THAT(
      Export("db out", 1),
      AllOf(HasSubstr("db -> out: 1 image in 1 folder"), HasSubstr("'boxes': an image with boxes"),
            HasSubstr("'floats': not an image: 3 floats"),
            HasSubstr("'pose': an image whose label is 1 numbers"),
            HasSubstr("'text': not a Datum"), HasSubstr("'torn': broken JPEG image"),
            HasSubstr("'two': not an image: 2x2x2 (channels x height x width)"),
            HasSubstr("db: 6 of 7 records were left out")));
  EXPECT_THAT(Files(), ElementsAre("out", "out/0", "out/0/good.png"));
}

TEST_F(DataExportTest, LeavesNoFolderWithoutImages) {
  MakeDatabase({{"text", "hello, world"}});
  EXPECT_THAT(
      Export("db out", 1),
      HasSubstr("db: holds no image that can be exported; the first record is 'text': not"));
  EXPECT_THAT(Files(), ElementsAre());
}

TEST_F(DataExportTest, WritesNothingIntoAFolderWithContent) {
  MakeDatabase({{"a", Raw(1, 2, 2, 0)}});
  fs::create_directory(folder_.path("out"));
  Write("out/mine", "stays");
  Write("file", "stays");
  EXPECT_THAT(Export("db out", 1), HasSubstr("out: has content already; give an empty folder"));
  EXPECT_THAT(Export("db file", 1), HasSubstr("file: already exists and is not a folder"));
  EXPECT_THAT(Files(), ElementsAre("file", "out", "out/mine"));
  fs::remove(folder_.path("out/mine"));
  Export("db out/");
  EXPECT_THAT(Files(), ElementsAre("file", "out", "out/0", "out/0/a.png"));
}

TEST_F(DataExportTest, LabelsMustHaveNames) {
  MakeDatabase({{"a", Raw(1, 2, 2, 0)}, {"b", Raw(1, 2, 2, 2)}});
  Write("names", "cat\ndog\n");
  EXPECT_THAT(Export("db out --labels=names", 1),
              HasSubstr("names: has no name for label 2 of record 'b'"));
  Write("names", "a/b\nc\na_b\n");
  EXPECT_THAT(Export("db out --labels=names", 1),
              HasSubstr("names: the labels 0 and 2 would have one folder, 'a_b'"));
  EXPECT_THAT(Export("db out --labels=none", 1), HasSubstr("none: cannot open"));
  EXPECT_THAT(Files(), ElementsAre("names"));
  EXPECT_THAT(Export("db", 1), HasSubstr("give a database and a folder"));
  EXPECT_THAT(Export("none out", 1), HasSubstr("none: no LMDB or LevelDB database here"));
}

// A limit on the file size stands in for a full disk. It must be larger than LMDB's lock file.
TEST_F(DataExportTest, AFullDiskLeavesNothing) {
  std::mt19937 random(1);
  Datum datum;
  datum.ParseFromString(Raw(3, 1000, 1000, 0));
  for (char& byte : *datum.mutable_data()) byte = static_cast<char>(random());
  MakeDatabase({{"a", Raw(1, 2, 2, 0)}, {"b", datum.SerializeAsString()}});
  const Outcome outcome = Run("data export db out", "trap '' XFSZ; ulimit -f 2400;");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("out/0/b.png: cannot write "));
  EXPECT_THAT(Files(), ElementsAre());
}

TEST_F(DataExportTest, ReportsAsJson) {
  MakeDatabase({{"a", Raw(1, 2, 2, 7)}, {"text", "hello, world"}});
  const std::string output = Export("db out --json", 1);
  const size_t begin = output.find('{'), end = output.rfind('}');  // next to the error's line
  ASSERT_NE(begin, std::string::npos) << output;
  google::protobuf::Struct json;
  ASSERT_TRUE(
      google::protobuf::util::JsonStringToMessage(output.substr(begin, end + 1 - begin), &json)
          .ok())
      << output;
  const auto& fields = json.fields();
  EXPECT_EQ(fields.at("images").number_value(), 1);
  const auto& one = fields.at("classes").list_value().values(0).struct_value().fields();
  EXPECT_EQ(one.at("label").number_value(), 7);
  EXPECT_EQ(one.at("folder").string_value(), "7");
  const auto& left_out = fields.at("left_out").list_value().values(0).struct_value().fields();
  EXPECT_EQ(left_out.at("key").string_value(), "text");
}

}  // namespace
}  // namespace caffe
