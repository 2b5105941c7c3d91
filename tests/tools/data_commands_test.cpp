// Runs caffe data verify, stat, head and bench.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <opencv2/imgcodecs.hpp>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/data/readers/record_writer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/run_program.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;

class DataCommandsTest : public ::testing::Test {
 protected:
  // raw: 3 records of 3x2x2 with labels 0, 1, 1. images: 2 PNG and a JPEG of 3x20x30.
  void SetUp() override {
    const auto raw = data::CreateRecordWriter(DataParameter::LEVELDB, folder_.path("raw"));
    for (int i = 0; i < 3; ++i) raw->Put("key" + std::to_string(i), Raw(i > 0));
    raw->Finish();
    const cv::Mat image(20, 30, CV_8UC3, cv::Scalar(1, 2, 3));
    for (const char* name : {"a.png", "b.png", "c.jpg"}) cv::imwrite(folder_.path(name), image);
    Write("list", "a.png 4\nb.png 5\nc.jpg 5\n");
    EXPECT_EQ(Run("convert_imageset --encoded ./ list images").status, 0);
  }

  static std::string Raw(int label) {
    Datum datum;
    datum.set_channels(3);
    datum.set_height(2);
    datum.set_width(2);
    datum.set_label(label);
    datum.set_data(std::string(12, 'x'));
    return datum.SerializeAsString();
  }

  // Creates a database with the images and two bad records.
  void MakeBroken() const {
    const auto reader = data::OpenRecordReader(DataParameter::LMDB, folder_.path("images"));
    const auto writer = data::CreateRecordWriter(DataParameter::LMDB, folder_.path("broken"));
    data::Record record;
    for (bool found = reader->First(&record); found; found = reader->Next(&record)) {
      writer->Put(record.key, record.value);
    }
    writer->Put("text", "hello, world");
    Datum torn;
    reader->Seek("00000002_c.jpg", &record);
    torn.ParseFromString(std::string(record.value));
    torn.mutable_data()->resize(torn.data().size() - 100);
    writer->Put("torn", torn.SerializeAsString());
    writer->Finish();
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path(name)) << text;
  }
  Outcome Run(const std::string& command) const {
    return testing::RunProgram(folder_.path(), command);
  }
  std::string Output(const std::string& arguments, int status = 0) const {
    const Outcome outcome = Run("caffe data " + arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
    return outcome.output;
  }
  google::protobuf::Struct Json(const std::string& arguments, int status = 0) const {
    google::protobuf::Struct json;
    // The JSON follows the error line, which is shown at every log level.
    const std::string output = Output(arguments + " --json --minloglevel=3", status);
    const std::string text = output.substr(std::min(output.find('{'), output.size()));
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text, &json).ok()) << text;
    return json;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(DataCommandsTest, VerifyNamesBadRecords) {
  EXPECT_THAT(Output("verify raw"), HasSubstr("raw: 3 records, no errors"));
  EXPECT_THAT(Output("verify images"), HasSubstr("images: 3 records, no errors"));
  MakeBroken();
  EXPECT_THAT(Output("verify broken", 1),
              AllOf(HasSubstr("'text': "), HasSubstr("'torn': broken JPEG image"),
                    HasSubstr("broken: 2 of 5 records cannot be decoded")));
  const google::protobuf::Struct json = Json("verify broken", 1);
  EXPECT_EQ(json.fields().at("bad").number_value(), 2);
  const auto& bad = json.fields().at("first_bad").list_value();
  EXPECT_EQ(bad.values(1).struct_value().fields().at("key").string_value(), "torn");
  EXPECT_THAT(Output("verify none", 1), HasSubstr("none: no LMDB or LevelDB database here"));
  EXPECT_THAT(Output("verify", 1), HasSubstr("give a database"));
}

TEST_F(DataCommandsTest, NamesTheDatabasesOfAModelsFolder) {
  std::filesystem::create_directories(folder_.path("model/data"));
  for (const char* const name : {"val", "train"}) {
    std::filesystem::copy(folder_.path("raw"), folder_.path("model/data/") + name);
  }
  EXPECT_THAT(Output("stat model", 1),
              HasSubstr("model: no LMDB or LevelDB database here; give model/data/train or "
                        "model/data/val"));
}

TEST_F(DataCommandsTest, StatCountsWhatIsThere) {
  EXPECT_THAT(Output("stat raw"),
              AllOf(HasSubstr("raw: 3 records"), HasSubstr("3x2x2 (3)"), HasSubstr("raw 3"),
                    HasSubstr("0: 1 ***"), HasSubstr("1: 2 ***"), Not(HasSubstr("warning"))));
  EXPECT_THAT(Output("stat images"),
              AllOf(HasSubstr("3x20x30 (3)"), HasSubstr("jpg 1, png 2"), HasSubstr("5: 2 ***")));
  MakeBroken();
  EXPECT_THAT(Output("stat broken"), HasSubstr("warning: 2 records cannot be read"));
  const google::protobuf::Struct json = Json("stat images");
  EXPECT_EQ(json.fields().at("records").number_value(), 3);
  EXPECT_EQ(json.fields().at("labels").struct_value().fields().at("5").number_value(), 2);
}

TEST_F(DataCommandsTest, HeadShowsTheFirstRecords) {
  const std::string head = Output("head images -n 2");
  EXPECT_THAT(head, AllOf(HasSubstr("'00000000_a.png'  label 4  3x20x30  png  "),
                          HasSubstr("'00000001_b.png'"), Not(HasSubstr("c.jpg"))));
  EXPECT_THAT(Output("head raw"), HasSubstr("'key2'  label 1  3x2x2  raw  "));
  EXPECT_EQ(Json("head raw").fields().at("records").list_value().values_size(), 3);
  EXPECT_THAT(Output("head raw -n 0", 1), HasSubstr("-n is 0; it must be at least 1"));
}

TEST_F(DataCommandsTest, BoxesAreLabels) {
  Write("a.txt", "7 1 2 10 12\n8 3 3 9 9\n");
  Write("boxes", "a.png a.txt\n");
  EXPECT_EQ(
      Run("convert_annoset --anno_type=detection --label_type=txt --encoded ./ boxes boxes_db")
          .status,
      0);
  EXPECT_THAT(Output("head boxes_db"), HasSubstr("label 7, 8 (boxes)  3x20x30  png"));
  EXPECT_THAT(Output("stat boxes_db"), HasSubstr("boxes      2"));
  EXPECT_THAT(Output("verify boxes_db"), HasSubstr("boxes_db: 1 record, no errors"));
}

TEST_F(DataCommandsTest, BenchMeasuresEveryDataLayer) {
  Write("jpeg_first", "c.jpg 5\na.png 4\nb.png 5\n");
  EXPECT_EQ(Run("convert_imageset --encoded ./ jpeg_first photographs").status, 0);
  Write("a.txt", "1 1 2 10 12\n");
  Write("boxes", "a.png a.txt\n");
  EXPECT_EQ(
      Run("convert_annoset --anno_type=detection --label_type=txt --encoded ./ boxes boxes_db")
          .status,
      0);
  Write("windows",
        "# 0\n" + folder_.path("a.png") + "\n3\n20\n30\n2\n1 0.9 1 1 19 15\n0 0 5 5 15 15\n");
  Write("paths", folder_.path("a.png") + " 0\n");
  Write("dump.prototxt",
        "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param {"
        "  shape { dim: 4 dim: 3 } shape { dim: 4 } } }"
        "layer { name: 'out' type: 'HDF5Output' bottom: 'data' bottom: 'label'"
        "  hdf5_output_param { file_name: 'rows.h5' } }");
  EXPECT_EQ(Run("caffe test dump.prototxt --iterations=1").status, 0);
  Write("h5_list", folder_.path("rows.h5") + "\n");
  Write("net.prototxt", R"(
    layer { name: "db" type: "Data" top: "a" top: "la"
      data_param { source: "photographs" backend: LMDB batch_size: 2 } }
    layer { name: "boxes" type: "AnnotatedData" top: "b" top: "lb"
      data_param { source: "boxes_db" backend: LMDB batch_size: 2 } }
    layer { name: "list" type: "ImageData" top: "c" top: "lc"
      image_data_param { source: "paths" batch_size: 2 } }
    layer { name: "windows" type: "WindowData" top: "d" top: "ld" transform_param { crop_size: 8 }
      window_data_param { source: "windows" batch_size: 4 } }
    layer { name: "rows" type: "HDF5Data" top: "data" top: "label"
      hdf5_data_param { source: "h5_list" batch_size: 2 } }
    layer { name: "dummy" type: "DummyData" top: "f" dummy_data_param { shape { dim: 5 dim: 3 } } }
    layer { name: "memory" type: "MemoryData" top: "g" top: "lg"
      memory_data_param { batch_size: 1 channels: 1 height: 1 width: 1 } }
    layer { name: "input" type: "Input" top: "h" input_param { shape { dim: 1 } } })");
  const auto json = Json("bench net.prototxt --seconds=0.01");
  const auto& layers = json.fields().at("layers").list_value();
  ASSERT_EQ(layers.values_size(), 6);
  for (const auto& layer : layers.values()) {
    EXPECT_GT(layer.struct_value().fields().at("pipeline").number_value(), 0);
  }
  EXPECT_EQ(layers.values(5).struct_value().fields().at("batch_size").number_value(), 5);
  EXPECT_THAT(Output("bench net.prototxt --seconds=0.01"),
              AllOf(HasSubstr("layer 'db': photographs, 3 records"), HasSubstr("libjpeg-turbo"),
                    HasSubstr("layer 'windows': WindowData, d 4x3x8x8"),
                    Not(HasSubstr("Restarting data prefetching"))));
}

}  // namespace
}  // namespace caffe
