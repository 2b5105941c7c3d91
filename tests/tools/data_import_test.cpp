// Runs caffe data import, and checks its databases and its reports.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <opencv2/imgcodecs.hpp>
#include <set>
#include <sstream>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/run_program.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;

class DataImportTest : public ::testing::Test {
 protected:
  void Image(const std::string& name, const cv::Mat& image) const {
    fs::create_directories(fs::path(folder_.path(name)).parent_path());
    ASSERT_TRUE(cv::imwrite(folder_.path(name), image)) << name;
  }
  // photos/cat/0.png ... of 20x30, and photos/dog/0.jpg ... of 20x30.
  void Photos(int cats, int dogs) const {
    for (int i = 0; i < cats; ++i) Image(StrCat("photos/cat/", i, ".png"), Plain(10, 20, 30));
    for (int i = 0; i < dogs; ++i) Image(StrCat("photos/dog/", i, ".jpg"), Plain(30, 40, 50));
  }
  static cv::Mat Plain(int blue, int green, int red) {
    return cv::Mat(20, 30, CV_8UC3, cv::Scalar(blue, green, red));
  }

  void Write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(folder_.path(name)).parent_path());
    std::ofstream(folder_.path(name), std::ios::binary) << bytes;
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path(name), std::ios::binary).rdbuf();
    return text.str();
  }

  Outcome Run(const std::string& arguments) const {
    return testing::RunProgram(folder_.path(), "caffe " + arguments);
  }
  std::string Import(const std::string& arguments) const {
    const Outcome outcome = Run("data import " + arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.output;
    return outcome.output;
  }
  void ExpectFailure(const std::string& arguments, const std::string& text) const {
    const Outcome outcome = Run("data import " + arguments);
    EXPECT_EQ(outcome.status, 1) << arguments << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(text)) << arguments;
  }

  std::map<std::string, Datum> Records(const std::string& name) const {
    const auto reader = data::OpenRecordReader(DataParameter::LMDB, folder_.path(name));
    std::map<std::string, Datum> records;
    data::Record view;
    for (bool found = reader->First(&view); found; found = reader->Next(&view)) {
      EXPECT_TRUE(records[std::string(view.key)].ParseFromString(std::string(view.value)));
    }
    return records;
  }
  // The number of records with each label.
  std::map<int, int> Labels(const std::string& name) const {
    std::map<int, int> labels;
    for (const auto& [key, datum] : Records(name)) ++labels[datum.label()];
    return labels;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(DataImportTest, MakesADatabaseOfAFolderOfClasses) {
  Photos(3, 3);
  const std::string report = Import("photos db");
  EXPECT_THAT(report, AllOf(HasSubstr("photos -> db: 6 images"), HasSubstr("jpg 3, png 3"),
                            HasSubstr("20x30 (smallest), 20x30 (median), 20x30 (largest)"),
                            HasSubstr("0 cat: 3"), HasSubstr("1 dog: 3"), Not(HasSubstr("left"))));
  EXPECT_THAT(report, Not(HasSubstr("warning")));
  const std::map<std::string, Datum> records = Records("db");
  ASSERT_EQ(records.size(), 6u);
  EXPECT_EQ(records.at("00000000_cat/0.png").data(), Read("photos/cat/0.png"));
  const Datum& dog = records.at("00000005_dog/2.jpg");
  EXPECT_EQ(dog.data(), Read("photos/dog/2.jpg"));
  EXPECT_TRUE(dog.encoded());
  EXPECT_EQ(dog.label(), 1);
  EXPECT_THAT((std::vector<int>{dog.channels(), dog.height(), dog.width()}),
              ElementsAre(3, 20, 30));
  EXPECT_EQ(Read("db/labels.txt"), "cat\ndog\n");
}

// The second half of the way from photographs to answers.
TEST_F(DataImportTest, ClassifyReadsTheNamesOfTheClasses) {
  for (const char* name : {"item", "n02123045 tabby, tabby cat", "red"}) {
    Image(StrCat("photos/", name, "/0.png"), Plain(10, 20, 30));
  }
  Import("photos db");
  Write("colors.prototxt", R"(
    layer { name: "data" type: "Input" top: "data"
            input_param { shape { dim: 1 dim: 3 dim: 20 dim: 30 } } }
    layer { name: "pool" type: "Pooling" bottom: "data" top: "color"
            pooling_param { pool: AVE global_pooling: true } })");
  const Outcome outcome = Run("classify colors.prototxt photos/red/0.png --labels=db/labels.txt");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr(" - \"red\"\n20.0000"),
                                    HasSubstr(" - \"n02123045 tabby, tabby cat\"\n10.0000"),
                                    HasSubstr(" - \"item\"\n")));
}

// BVLC's Data layer reads neither, so both are stored as 8-bit PNG files.
TEST_F(DataImportTest, ReadsGifAnd16BitImages) {
  Photos(1, 1);
  Image("photos/cat/1.png", cv::Mat(20, 30, CV_16UC3, cv::Scalar(0x0a00, 0x14ff, 0x1e80)));
  Write("photos/cat/2.gif", std::string("GIF89a\1\0\1\0\x80\0\0\7\10\11\0\0\0,\0\0\0\0\1\0\1\0\0"
                                        "\2\2\x44\1\0;",
                                        35));
  EXPECT_THAT(Import("photos db"), AllOf(HasSubstr("4 images"), HasSubstr("gif 1, jpg 1, png 2")));
  const auto stored = [&](const std::string& key) {
    const std::string file = Records("db").at(key).data();
    EXPECT_TRUE(file.starts_with("\x89PNG"));
    return cv::imdecode(std::vector<char>(file.begin(), file.end()), cv::IMREAD_UNCHANGED);
  };
  const cv::Mat from_wide = stored("00000001_cat/1.png"), from_gif = stored("00000002_cat/2.gif");
  ASSERT_EQ(from_wide.type(), CV_8UC3);
  EXPECT_EQ(from_wide.at<cv::Vec3b>(19, 29), cv::Vec3b(10, 20, 30));
  ASSERT_EQ(from_gif.size(), cv::Size(1, 1));
  EXPECT_EQ(from_gif.at<cv::Vec3b>(0, 0), cv::Vec3b(9, 8, 7));
}

TEST_F(DataImportTest, WritesTheMeanOfImagesOfOneSize) {
  Photos(2, 0);
  Image("photos/dog/0.png", Plain(40, 50, 61));
  EXPECT_THAT(Import("photos db"), HasSubstr("20.000 30.000 40.333 (blue, green, red: mean_value), "
                                             "db/mean.binaryproto (mean_file)"));
  BlobProto mean;
  ReadBinaryProto(folder_.path("db/mean.binaryproto"), &mean);
  EXPECT_EQ(mean.data_size(), 3 * 20 * 30);
  EXPECT_NEAR(mean.data(0), 20, 1e-4);
  EXPECT_NEAR(mean.data(3 * 20 * 30 - 1), 40.3333, 1e-3);

  Image("photos/dog/1.png", cv::Mat(40, 10, CV_8UC3, cv::Scalar(0, 0, 0)));
  EXPECT_THAT(Import("photos other"),
              AllOf(HasSubstr("40x10 (smallest)"), HasSubstr("warning: the images differ in size"),
                    Not(HasSubstr("mean.binaryproto"))));
  EXPECT_FALSE(fs::exists(folder_.path("other/mean.binaryproto")));
}

TEST_F(DataImportTest, ResizesAndTurnsGray) {
  Photos(2, 2);
  Import("photos db --resize=8x6");
  const Datum cat = Records("db").at("00000000_cat/0.png");
  EXPECT_EQ(cat.height(), 8);
  EXPECT_EQ(cat.width(), 6);
  const std::string& bytes = cat.data();
  const cv::Mat decoded =
      cv::imdecode(std::vector<uint8_t>(bytes.begin(), bytes.end()), cv::IMREAD_UNCHANGED);
  EXPECT_EQ(decoded.size(), cv::Size(6, 8));
  EXPECT_EQ(decoded.at<cv::Vec3b>(0, 0), cv::Vec3b(10, 20, 30));
  EXPECT_EQ(Records("db").at("00000002_dog/0.jpg").data().substr(0, 3), "\xff\xd8\xff");

  EXPECT_THAT(Import("photos gray --gray"), HasSubstr("(gray)"));
  EXPECT_EQ(Records("gray").at("00000000_cat/0.png").channels(), 1);
  ExpectFailure("photos bad --resize=8", "--resize is '8'; give HEIGHTxWIDTH");
  ExpectFailure("photos bad --resize=8x0", "--resize is '8x0'");
  EXPECT_FALSE(fs::exists(folder_.path("bad")));
}

TEST_F(DataImportTest, NamesBrokenFilesAndLeavesThemOut) {
  Photos(3, 3);
  Write("photos/cat/empty.png", "");
  Write("photos/cat/text.jpg", "hello");
  Write("photos/dog/torn.jpg", Read("photos/dog/0.jpg").substr(0, 200));
  Write("photos/dog/torn.png", Read("photos/cat/0.png").substr(0, 50));
  Write("photos/dog/.hidden", "passed over");
  Write("photos/notes.txt", "not in a class");
  fs::create_symlink("nowhere", folder_.path("photos/dog/link.png"));
  fs::create_directory_symlink("..", folder_.path("photos/dog/circle"));
  const std::string report = Import("photos db");
  EXPECT_THAT(report, AllOf(HasSubstr("6 images"), HasSubstr("cat/empty.png: an empty file"),
                            HasSubstr("cat/text.jpg: "), HasSubstr("dog/torn.jpg: broken JPEG"),
                            HasSubstr("dog/torn.png: "), HasSubstr("notes.txt: is next to")));
  EXPECT_THAT(report, AllOf(HasSubstr("dog/link.png: cannot open: No such file"),
                            HasSubstr("dog/circle: a link to a folder"),
                            HasSubstr("warning: 7 files were left out"), Not(HasSubstr("hidden"))));
  EXPECT_EQ(Records("db").size(), 6u);

  fs::remove_all(folder_.path("photos"));
  Write("photos/cat/text.jpg", "hello");
  ExpectFailure("photos none", "holds no image that can be read");
  EXPECT_FALSE(fs::exists(folder_.path("none")));
  EXPECT_FALSE(fs::exists(folder_.path("none.partial")));
}

// LMDB maps its lock file, and on a full disk the first access to it raises SIGBUS.
TEST_F(DataImportTest, WritesNoLockFile) {
  Photos(1, 1);
  Import("photos db");
  EXPECT_FALSE(fs::exists(folder_.path("db/lock.mdb")));
  EXPECT_EQ(Records("db").size(), 2u);
}

TEST_F(DataImportTest, LeavesOutWhatIsNoFile) {
  Photos(2, 2);
  for (const char* name : {"photos/loop", "photos/cat/loop.png"}) {
    fs::create_symlink(fs::path(name).filename(), folder_.path(name));
  }
  // Reading it would wait for a writer.
  ASSERT_EQ(mkfifo(folder_.path("photos/cat/pipe.png").c_str(), 0600), 0);
  const std::string report = Import("photos db");
  EXPECT_THAT(report, AllOf(HasSubstr("4 images"), HasSubstr("loop: is next to"),
                            HasSubstr("cat/loop.png: cannot open: Too many levels"),
                            HasSubstr("cat/pipe.png: not a regular file")));
}

TEST_F(DataImportTest, TakesAListFile) {
  Photos(2, 2);
  Write("photos/list.txt", "dog/1.jpg 7\n\ncat/0.png 3\r\n");
  EXPECT_THAT(Import("photos/list.txt db"), AllOf(HasSubstr("2 images"), HasSubstr("3 3: 1")));
  EXPECT_FALSE(fs::exists(folder_.path("db/labels.txt")));  // a list has no names
  EXPECT_EQ(Records("db").at("00000000_dog/1.jpg").label(), 7);
  EXPECT_EQ(Records("db").at("00000001_cat/0.png").label(), 3);
  Write("list.txt", "0.png 1\n");
  Import("list.txt other --root=photos/cat");
  EXPECT_EQ(Labels("other"), (std::map<int, int>{{1, 1}}));
  Write("list.txt", "0.png 1\n1.png\n");
  ExpectFailure("list.txt bad", "list.txt:2: ");
  ExpectFailure("none bad", "none: cannot open");
  Write("list.txt", "0.png 1\n");
  ExpectFailure("list.txt bad --root=photos",
                "list.txt: holds no image that can be read; the first is 'photos/0.png': cannot "
                "open: No such file or directory; --root=FOLDER says where");
  EXPECT_THAT(Run("help data import").output, HasSubstr("--root=FOLDER"));
  ExpectFailure("photos bad --root=x", "leave --root out");
}

TEST_F(DataImportTest, ShufflesTheSameWayEachTime) {
  Photos(10, 10);
  Import("photos a --shuffle");
  Import("photos b --shuffle");
  Import("photos c --shuffle --seed=2");
  const auto keys = [&](const std::string& name) {
    std::vector<std::string> all;
    for (const auto& [key, datum] : Records(name)) all.push_back(key);
    return all;
  };
  EXPECT_EQ(keys("a"), keys("b"));
  EXPECT_NE(keys("a"), keys("c"));
  EXPECT_EQ(Labels("a"), (std::map<int, int>{{0, 10}, {1, 10}}));
}

TEST_F(DataImportTest, TakesAShareOfEachClassForValidation) {
  Photos(20, 10);
  EXPECT_THAT(Import("photos db --val=20% --shuffle"),
              AllOf(HasSubstr("db: 24 images"), HasSubstr("db_val: 6 images")));
  EXPECT_EQ(Labels("db"), (std::map<int, int>{{0, 16}, {1, 8}}));
  EXPECT_EQ(Labels("db_val"), (std::map<int, int>{{0, 4}, {1, 2}}));
  EXPECT_EQ(Read("db_val/labels.txt"), Read("db/labels.txt"));
  std::set<std::string> files;
  for (const char* name : {"db", "db_val"}) {
    for (const auto& [key, datum] : Records(name)) files.insert(key.substr(9));
  }
  EXPECT_EQ(files.size(), 30u);
  ExpectFailure("photos bad --val=0.2", "--val is '0.2'; give a share, as in 10%");
  ExpectFailure("photos db", "db: already exists");
  fs::remove_all(folder_.path("db"));
  ExpectFailure("photos db --val=20%", "db_val: already exists");
  EXPECT_FALSE(fs::exists(folder_.path("db")));
}

TEST_F(DataImportTest, WarnsOfClassesOfVeryDifferentSizes) {
  Photos(10, 1);
  EXPECT_THAT(Import("photos db"),
              HasSubstr("warning: the classes are imbalanced: 'cat' has 10 images, 'dog' 1"));
}

TEST_F(DataImportTest, StoresGrayImagesAmongOthersAsColour) {
  Photos(1, 1);
  Image("photos/cat/gray.png", cv::Mat(20, 30, CV_8UC1, cv::Scalar(5)));
  Image("photos/cat/large.png", cv::Mat(40, 30, CV_8UC1, cv::Scalar(5)));
  Image("photos/dog/transparent.png", cv::Mat(20, 30, CV_8UC4, cv::Scalar(5, 6, 7, 8)));
  EXPECT_THAT(Import("photos own"), AllOf(HasSubstr("3 channels, each image in its own size"),
                                          HasSubstr("warning: the images differ in size")));
  EXPECT_THAT(Import("photos gray --gray --resize=8x8"),
              AllOf(HasSubstr("1x8x8 (channels x height x width)"), Not(HasSubstr("warning"))));
  EXPECT_THAT(Import("photos db --resize=16x12"),
              AllOf(HasSubstr("3x16x12 (channels x height x width)"), Not(HasSubstr("warning"))));
  for (const auto& [key, datum] : Records("db")) EXPECT_EQ(datum.channels(), 3) << key;
  Write("net.prototxt",
        "layer { name: 'x' type: 'Data' top: 'x' top: 'y' data_param { source: 'db' "
        "backend: LMDB batch_size: 5 } }");
  EXPECT_EQ(Run("test net.prototxt --iterations=1").status, 0);
}

TEST_F(DataImportTest, RefusesWhatIsNoFolderOfClasses) {
  Photos(1, 1);
  ExpectFailure("photos", "give a folder of images and a database");
  ExpectFailure("photos/cat db", "photos/cat: has no folders");
  ExpectFailure("photos/cat db", "of images with boxes or masks, caffe new makes databases");
  fs::create_directory(folder_.path("set"));
  fs::rename(folder_.path("photos"), folder_.path("set/train"));
  ExpectFailure("set db", "set: holds 'train', which looks like a part of a set");
  EXPECT_FALSE(fs::exists(folder_.path("db")));
}

TEST_F(DataImportTest, ReportsAsJson) {
  Photos(2, 1);
  Write("photos/dog/text.jpg", "hello");
  const Outcome outcome = Run("data import photos db --val=50% --json 2> /dev/null");
  google::protobuf::Struct json;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(outcome.output, &json).ok())
      << outcome.output;
  const auto& fields = json.fields();
  EXPECT_EQ(fields.at("images").number_value(), 2);
  EXPECT_EQ(fields.at("validation_images").number_value(), 1);
  EXPECT_EQ(fields.at("validation_database").string_value(), "db_val");
  EXPECT_EQ(fields.at("sizes").struct_value().fields().at("median").string_value(), "20x30");
  EXPECT_EQ(fields.at("channels").number_value(), 3);
  EXPECT_EQ(fields.at("stored_size").string_value(), "20x30");
  EXPECT_EQ(fields.at("formats").struct_value().fields().at("png").number_value(), 2);
  EXPECT_EQ(fields.at("mean_values").list_value().values_size(), 3);
  const auto& file = fields.at("left_out").list_value().values(0).struct_value().fields();
  EXPECT_EQ(file.at("file").string_value(), "dog/text.jpg");
  EXPECT_EQ(fields.at("classes").list_value().values_size(), 2);
}

TEST_F(DataImportTest, TwoWordsNameTheCommand) {
  EXPECT_THAT(Run("help data import").output, HasSubstr("caffe data import: make a database"));
}

// Data layers decode records as stored, so a photograph is stored upright.
TEST_F(DataImportTest, PhotographsAreStoredUpright) {
  Image("photos/cat/0.jpg", Plain(10, 20, 30));
  const std::string on_its_side(
      "\xff\xe1\0\x22"
      "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01"
      "\0\x06\0\0\0\0\0\0",
      36);
  Write("photos/cat/0.jpg", Read("photos/cat/0.jpg").insert(2, on_its_side));
  Photos(0, 1);
  Import("photos db");
  const std::map<std::string, Datum> records = Records("db");
  const Datum& cat = records.at("00000000_cat/0.jpg");
  EXPECT_EQ(cat.height(), 30);
  EXPECT_EQ(cat.width(), 20);
  const std::string& bytes = cat.data();
  const cv::Mat pixels =
      cv::imdecode(std::vector<uint8_t>(bytes.begin(), bytes.end()), cv::IMREAD_UNCHANGED);
  EXPECT_EQ(pixels.rows, 30);
  EXPECT_EQ(records.at("00000001_dog/0.jpg").height(), 20);
}

// The layer that reads the records would not turn them.
TEST_F(DataImportTest, PngAndWebpAreStoredUpright) {
  const std::string block("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", 26);
  constexpr size_t kAfterPngHeader = 33;
  Image("photos/cat/0.png", Plain(10, 20, 30));
  Write("photos/cat/0.png", Read("photos/cat/0.png")
                                .insert(kAfterPngHeader, std::string("\0\0\0\x1a", 4) + "eXIf" +
                                                             block + "\xd6\x67\x4b\x69"));
  Image("photos/dog/0.webp", Plain(10, 20, 30));
  Write("photos/dog/0.webp",
        Read("photos/dog/0.webp") + "EXIF" + std::string("\x1a\0\0\0", 4) + block);
  Import("photos db");
  for (const auto& [key, datum] : Records("db")) {
    EXPECT_EQ(datum.height(), 30) << key;
    EXPECT_EQ(datum.width(), 20) << key;
    const cv::Mat pixels = cv::imdecode(
        std::vector<uint8_t>(datum.data().begin(), datum.data().end()), cv::IMREAD_UNCHANGED);
    EXPECT_EQ(pixels.rows, 30) << key;
  }
}

}  // namespace
}  // namespace caffe
