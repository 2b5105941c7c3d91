// Nets whose data layers end each epoch with a smaller batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "caffe/epoch_batches.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/data/databases.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/training_rows.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;

class WholeEpochsTest : public ::testing::Test {
 protected:
  NetParameter Parse(const std::string& text) const {
    NetParameter net;
    ParseTextProto("name: 'epochs' state { phase: TEST } " + text, "test", &net);
    return net;
  }
  // Seven images labelled 0 to 6, in batches of 3.
  NetParameter Images(const std::string& options = "") {
    const std::string path = folder_.path("db");
    if (!has_database_) data::WriteDatabase(path, data::NumberedRecords(7, 1, 4, 4));
    has_database_ = true;
    return Parse(
        "layer { name: 'images' type: 'Data' top: 'x' top: 'label' data_param { source: '" + path +
        "' backend: LMDB batch_size: 3 " + options +
        " } } layer { name: 'sum' type: 'Reduction' bottom: 'x' top: 'sum' "
        "reduction_param { axis: 1 } }");
  }
  // The labels of this many batches, batch by batch.
  static std::vector<std::vector<int>> Labels(Net& net, int batches) {
    std::vector<std::vector<int>> all;
    for (int i = 0; i < batches; ++i) {
      net.Forward();
      const auto& label = net.blob_by_name("label");
      auto& labels = all.emplace_back();
      for (int64_t k = 0; k < label->count(); ++k)
        labels.push_back(static_cast<int>(label->cpu_data()[k]));
      EXPECT_EQ(net.blob_by_name("sum")->count(), label->count());
    }
    return all;
  }

  const testing::TemporaryFolder folder_;
  bool has_database_ = false;
};

TEST_F(WholeEpochsTest, TheLastBatchIsSmaller) {
  for (const bool keep_all : {true, false}) {
    Net net(Images(), {.keep_all = keep_all, .whole_epochs = true});
    const EpochBatches epoch = BatchesOfEpoch(net);
    EXPECT_EQ(epoch.records, 7u);
    EXPECT_EQ(epoch.batch_size, 3u);
    EXPECT_EQ(epoch.count(), 3u);
    EXPECT_EQ(epoch.RecordsOf(0), 3u);
    EXPECT_EQ(epoch.RecordsOf(2), 1u);
    EXPECT_THAT(Labels(net, 4), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5),
                                            ElementsAre(6), ElementsAre(0, 1, 2)));
  }
}

TEST_F(WholeEpochsTest, OtherNetsGoOnWithTheFirstRecord) {
  Net net(Images(), {});
  EXPECT_THAT(Labels(net, 4), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5),
                                          ElementsAre(6, 0, 1), ElementsAre(2, 3, 4)));
}

TEST_F(WholeEpochsTest, RanksTakeBatchesInTurn) {
  Net first(Images(), {.rank = 0, .ranks = 2, .whole_epochs = true});
  Net second(Images(), {.rank = 1, .ranks = 2, .whole_epochs = true});
  EXPECT_THAT(Labels(first, 3),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(6), ElementsAre(3, 4, 5)));
  EXPECT_THAT(Labels(second, 3),
              ElementsAre(ElementsAre(3, 4, 5), ElementsAre(0, 1, 2), ElementsAre(6)));
}

// An epoch's order has each record once; skipping records would break this.
TEST_F(WholeEpochsTest, ShuffledRecordsComeOnceAndNoneIsSkipped) {
  Net net(Images("shuffle: true rand_skip: 5"), {.seed = 4, .whole_epochs = true});
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> seen;
    for (const std::vector<int>& batch : Labels(net, 3))
      seen.insert(seen.end(), batch.begin(), batch.end());
    EXPECT_THAT(seen, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6));
  }
}

TEST_F(WholeEpochsTest, FewerRecordsThanABatch) {
  NetParameter param = Images();
  param.mutable_layer(0)->mutable_data_param()->set_batch_size(10);
  Net net(param, {.whole_epochs = true});
  EXPECT_EQ(BatchesOfEpoch(net).count(), 1u);
  const auto batches = Labels(net, 2);
  EXPECT_EQ(batches[0].size(), 7u);
  EXPECT_EQ(batches[1].size(), 7u);
}

TEST_F(WholeEpochsTest, RowsOfHdf5Too) {
  const std::string list = testing::WriteTrainingRows(folder_.path("rows"), 8);
  const std::string text = testing::ClassifierOfRows(list, list, 3);
  NetParameter param;
  ParseTextProto("state { phase: TEST } " + text, "test", &param);
  Net net(param, {.whole_epochs = true});
  EXPECT_EQ(BatchesOfEpoch(net).count(), 3u);
  std::vector<int64_t> sizes;
  for (int i = 0; i < 5; ++i) {
    net.Forward();
    sizes.push_back(net.blob_by_name("y")->shape(0));
  }
  EXPECT_THAT(sizes, ElementsAre(3, 3, 2, 3, 3));
}

TEST_F(WholeEpochsTest, SaysWhyAnEpochHasNoLength) {
  const auto error = [](const NetParameter& param) {
    const Net net(param);
    return ErrorText<InvalidArgument>([&] { BatchesOfEpoch(net); });
  };
  EXPECT_THAT(error(Parse("layer { name: 'made' type: 'DummyData' top: 'x' "
                          "dummy_data_param { shape { dim: 2 } } }")),
              HasSubstr("net 'epochs' does not know how many records it has: of its data layers "
                        "'made' (DummyData) none can tell"));
  NetParameter two = Images();
  *two.add_layer() = two.layer(0);
  two.mutable_layer(2)->set_name("others");
  two.mutable_layer(2)->set_top(0, "x2");
  two.mutable_layer(2)->set_top(1, "label2");
  two.mutable_layer(2)->mutable_data_param()->set_batch_size(2);
  EXPECT_THAT(error(two), AllOf(HasSubstr("'others' reads 7 records in batches of 2"),
                                HasSubstr("'images' 7 in batches of 3")));
}

}  // namespace
}  // namespace caffe
