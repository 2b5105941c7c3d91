// Runs the small programs that read and write nets, label maps and features.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/readers/record_reader.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/run_program.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

class FileToolsTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path(name), std::ios::binary) << text;
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path(name)).rdbuf();
    return text.str();
  }

  // Runs a program in the test's folder and expects its exit status; returns its output.
  std::string Run(const std::string& command, int status = 0) const {
    const testing::Outcome outcome = testing::RunProgram(folder_.path(), command);
    EXPECT_EQ(outcome.status, status) << command << "\n" << outcome.output;
    return outcome.output;
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(FileToolsTest, UpgradesNetsAndSolvers) {
  Write("old.prototxt",
        "name: 'old' input: 'x' input_dim: 2 input_dim: 3 input_dim: 1 input_dim: 1 "
        "layers { name: 'r' type: RELU bottom: 'x' top: 'y' }");
  EXPECT_THAT(Run("upgrade_net_proto_text old.prototxt new.prototxt"),
              HasSubstr("Wrote upgraded NetParameter text proto to new.prototxt"));
  EXPECT_EQ(ReadNetText(folder_.path("new.prototxt")).layer(1).type(), "ReLU");
  EXPECT_THAT(Run("upgrade_net_proto_text new.prototxt same.prototxt"),
              HasSubstr("File already in latest proto format: new.prototxt"));
  EXPECT_EQ(Read("same.prototxt"), Read("new.prototxt"));
  Write("solver.prototxt", "net: 'n' base_lr: 0.1 solver_type: ADAM");
  Run("upgrade_solver_proto_text solver.prototxt new_solver.prototxt");
  EXPECT_THAT(Read("new_solver.prototxt"), HasSubstr("type: \"Adam\""));
  Write("broken.prototxt", "layer { nam: 'x' }");
  EXPECT_THAT(Run("upgrade_net_proto_text broken.prototxt out.prototxt", 2),
              HasSubstr("broken.prototxt:1:9"));
  EXPECT_THAT(Run("upgrade_net_proto_binary broken.prototxt out.caffemodel", 2),
              HasSubstr("broken.prototxt"));
  EXPECT_THAT(Run("upgrade_net_proto_text broken.prototxt", 1), HasSubstr("Usage"));
  Write("mixed.prototxt", "layer { name: 'x' } layers { name: 'y' type: RELU }");
  EXPECT_THAT(Run("upgrade_net_proto_text mixed.prototxt out.prototxt", 1),
              HasSubstr("write all of them as 'layer'"));
}

TEST_F(FileToolsTest, UpgradesBinaryNets) {
  NetParameter old;
  ParseTextProto("name: 'old' layers { name: 'd' type: DROPOUT bottom: 'x' top: 'y' }", "test",
                 &old);
  Write("old.caffemodel", old.SerializeAsString());
  Run("upgrade_net_proto_binary old.caffemodel new.caffemodel");
  NetParameter upgraded;
  ASSERT_TRUE(upgraded.ParseFromString(Read("new.caffemodel")));
  EXPECT_EQ(upgraded.layers_size(), 0);
  EXPECT_EQ(upgraded.layer(0).type(), "Dropout");
}

TEST_F(FileToolsTest, MakesLabelMaps) {
  Write("names.txt", "cat 1 Cat\ndog 2 Dog\n\n");
  Run("create_label_map --include_background names.txt map.prototxt");
  LabelMap map;
  ReadTextProto(folder_.path("map.prototxt"), &map);
  ASSERT_EQ(map.item_size(), 3);
  EXPECT_EQ(map.item(0).name(), "none_of_the_above");
  EXPECT_EQ(map.item(2).label(), 2);
  EXPECT_EQ(map.item(2).display_name(), "Dog");
  Write("names.txt", "cat,1,Big cat\n");
  Run("create_label_map --delimiter=, names.txt map.prototxt");
  ReadTextProto(folder_.path("map.prototxt"), &map);
  EXPECT_EQ(map.item(0).display_name(), "Big cat");
  Write("names.txt", "cat 1 Cat\ndog 1 Dog\n");
  EXPECT_THAT(Run("create_label_map names.txt map.prototxt", 1),
              HasSubstr("names.txt:2: 'dog' or label 1"));
  Write("names.txt", "cat Cat\n");
  EXPECT_THAT(Run("create_label_map names.txt map.prototxt", 1), HasSubstr("has 2 parts"));
}

TEST_F(FileToolsTest, WritesImageSizes) {
  const data::Image image{{3, 5, 7}, std::vector<uint8_t>(105)};
  Write("a.jpg", data::EncodeImage(image, "jpg"));
  Write("b.png", data::EncodeImage(image, "png"));
  Write("list.txt", "a.jpg a.xml\nb.png b.xml\n");
  Run("get_image_size ./ list.txt sizes.txt");
  EXPECT_EQ(Read("sizes.txt"), "a 5 7\nb 5 7\n");
  Write("ids.txt", "a 11\nb 12\n");
  Run("get_image_size --name_id_file=ids.txt ./ list.txt sizes.txt");
  EXPECT_EQ(Read("sizes.txt"), "11 5 7\n12 5 7\n");
  Write("list.txt", "missing.jpg\n");
  EXPECT_THAT(Run("get_image_size ./ list.txt sizes.txt", 1), HasSubstr("missing.jpg"));
}

// The same two boxes in each of the three formats.
TEST_F(FileToolsTest, ConvertsAnnotations) {
  const data::Image image{{3, 20, 40}, std::vector<uint8_t>(3 * 20 * 40, 7)};
  Write("cat.jpg", data::EncodeImage(image, "jpg"));
  Write("map", "item { name: 'cat' label: 3 } item { name: 'dog' label: 5 }");
  Write("cat.xml", R"(<annotation><size><width>40</width><height>20</height></size>
    <object><name>cat</name><difficult>0</difficult>
      <bndbox><xmin>4</xmin><ymin>5</ymin><xmax>20</xmax><ymax>10</ymax></bndbox></object>
    <object><name>dog</name><difficult>1</difficult>
      <bndbox><xmin>0</xmin><ymin>0</ymin><xmax>40</xmax><ymax>20</ymax></bndbox></object>
    </annotation>)");
  Write("cat.json", R"({"image": {"width": 40, "height": 20}, "annotation": [
    {"bbox": [4, 5, 16, 5], "category_id": "cat", "iscrowd": 0},
    {"bbox": [0, 0, 40, 20], "category_id": "dog", "iscrowd": 1}]})");
  Write("cat.txt", "3 4 5 20 10\n5 0 0 40 20\n");
  for (const std::string type : {"xml", "json", "txt"}) {
    SCOPED_TRACE(type);
    Write("list", "cat.jpg cat." + type + "\n");
    const std::string flags =
        "convert_annoset --anno_type=detection --label_map_file=map --encoded --min_dim=10 "
        "--label_type=" +
        type;
    EXPECT_THAT(Run(flags + " ./ list db_" + type), HasSubstr("Processed 1 files."));
    const auto reader = data::OpenRecordReader(DataParameter::LMDB, folder_.path("db_" + type));
    data::Record stored;
    ASSERT_TRUE(reader->First(&stored));
    AnnotatedDatum record;
    ASSERT_TRUE(record.ParseFromString(std::string(stored.value)));
    EXPECT_EQ(record.datum().height(), 10);
    EXPECT_EQ(record.datum().width(), 20);
    EXPECT_TRUE(record.datum().encoded());
    ASSERT_EQ(record.annotation_group_size(), 2);
    EXPECT_EQ(record.annotation_group(0).group_label(), 3);
    EXPECT_EQ(record.annotation_group(1).group_label(), 5);
    const NormalizedBBox& box = record.annotation_group(0).annotation(0).bbox();
    EXPECT_FLOAT_EQ(box.xmin(), 0.1f);
    EXPECT_FLOAT_EQ(box.ymin(), 0.25f);
    EXPECT_FLOAT_EQ(box.xmax(), 0.5f);
    EXPECT_FLOAT_EQ(box.ymax(), 0.5f);
    EXPECT_EQ(record.annotation_group(1).annotation(0).bbox().difficult(), type != "txt");
  }
  Write("bad", "cat.jpg cat.jpg\n");
  EXPECT_THAT(Run("convert_annoset --anno_type=detection --label_map_file=map ./ bad db_bad", 1),
              HasSubstr("cat.jpg:1: expected <"));
  Write("cow.txt", "cow 1 1 2 2");
  Write("cow", "cat.jpg cow.txt\n");
  EXPECT_THAT(Run("convert_annoset --anno_type=detection --label_type=txt --label_map_file=map ./ "
                  "cow db_cow",
                  1),
              HasSubstr("cow.txt: 'cow' is not a class index"));
}

TEST_F(FileToolsTest, ExtractsFeatures) {
  Write("net.prototxt", R"(
    name: 'features'
    layer { name: 'x' type: 'DummyData' top: 'x'
            dummy_data_param { shape { dim: 3 dim: 2 } data_filler { value: 2 } } }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip'
            inner_product_param { num_output: 4 weight_filler { value: 0.5 } } })");
  NetParameter weights;
  Net(folder_.path("net.prototxt"), TEST).ToProto(&weights);
  Write("net.caffemodel", weights.SerializeAsString());
  EXPECT_THAT(Run("extract_features net.caffemodel net.prototxt ip,x ip_db,x_db 2 lmdb"),
              HasSubstr("Successfully extracted the features!"));
  const auto reader = data::OpenRecordReader(DataParameter::LMDB, folder_.path("ip_db"));
  EXPECT_EQ(reader->count(), 6u);
  data::Record record;
  ASSERT_TRUE(reader->Seek("0000000005", &record));
  Datum datum;
  ASSERT_TRUE(datum.ParseFromArray(record.value.data(), static_cast<int>(record.value.size())));
  EXPECT_EQ(datum.channels(), 4);
  EXPECT_EQ(datum.float_data(3), 2);
  EXPECT_THAT(Run("extract_features net.caffemodel net.prototxt ipp db 2 lmdb", 1),
              HasSubstr("did you mean 'ip'?"));
  EXPECT_THAT(Run("extract_features net.caffemodel net.prototxt ip,x db 2 lmdb", 1),
              HasSubstr("2 blobs but 1 databases"));
  EXPECT_THAT(Run("extract_features net.caffemodel net.prototxt ip db 0 lmdb", 1),
              HasSubstr("the number of batches is '0'"));
  EXPECT_THAT(Run("extract_features net.caffemodel net.prototxt ip db 2 lmdb TPU", 1),
              HasSubstr("the device is 'TPU'"));
  EXPECT_THAT(Run("extract_features net.caffemodel net.prototxt ip db 2 lmdb GPU x", 1),
              HasSubstr("the number of the GPU is 'x'"));
}

}  // namespace
}  // namespace caffe
