#include "caffe/data/hdf5_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "caffe/error.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

class Hdf5RowsTest : public ::testing::Test {
 protected:
  // Rows `first`, first + 1, ... of two numbers each, and a label equal to the row's number.
  void AddFile(const std::string& name, int first, int rows, int labels) {
    Hdf5Writer writer(folder_.path(name));
    std::vector<float> data, label;
    for (int i = 0; i < rows; ++i) {
      data.insert(data.end(), {static_cast<float>(first + i), -static_cast<float>(first + i)});
    }
    for (int i = 0; i < labels; ++i) label.push_back(static_cast<float>(first + i));
    writer.WriteFloats("data", Shape{rows, 2}, data);
    writer.WriteFloats("label", Shape{labels}, label);
    writer.Commit();
    std::ofstream(list_, std::ios::app) << folder_.path(name) << "\n";
  }

  Hdf5RowsOptions Options(bool shuffle = false, uint64_t start = 0) const {
    return {.list = list_,
            .datasets = {"data", "label"},
            .shuffle = shuffle,
            .seed = 7,
            .stream = "l",
            .start = start};
  }

  static std::vector<int> Take(Hdf5Rows& rows, int count) {
    std::vector<int> labels;
    for (int i = 0; i < count; ++i) {
      const std::vector<const float*>& row = rows.Next();
      EXPECT_EQ(row[0][1], -row[1][0]);
      labels.push_back(static_cast<int>(row[1][0]));
    }
    return labels;
  }

  const caffe::testing::TemporaryFolder folder_;
  const std::string list_ = folder_.path("list.txt");
};

TEST_F(Hdf5RowsTest, GoesThroughFilesAndBeginsAgain) {
  AddFile("a.h5", 0, 3, 3);
  AddFile("b.h5", 3, 2, 2);
  Hdf5Rows rows(Options());
  EXPECT_EQ(rows.count(), 5u);
  EXPECT_EQ(Take(rows, 7), (std::vector<int>{0, 1, 2, 3, 4, 0, 1}));
  EXPECT_EQ(rows.rows_consumed(), 7u);
}

TEST_F(Hdf5RowsTest, ShufflesEachEpochAnewAndResumes) {
  AddFile("a.h5", 0, 20, 20);
  AddFile("b.h5", 20, 20, 20);
  Hdf5Rows rows(Options(true));
  const std::vector<int> first = Take(rows, 40), second = Take(rows, 40);
  EXPECT_EQ(std::set<int>(first.begin(), first.end()).size(), 40u);
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  Hdf5Rows resumed(Options(true, 30));
  EXPECT_EQ(Take(resumed, 10), std::vector<int>(first.begin() + 30, first.end()));
}

TEST_F(Hdf5RowsTest, RanksDealRowsAmongThemselves) {
  AddFile("a.h5", 0, 5, 5);
  Hdf5RowsOptions options = Options();
  options.ranks = 2;
  options.rank = 1;
  Hdf5Rows rows(options);
  EXPECT_EQ(Take(rows, 5), (std::vector<int>{1, 3, 0, 2, 4}));
}

TEST_F(Hdf5RowsTest, RanksMayTakeTurnsWithBlocks) {
  AddFile("a.h5", 0, 5, 5);
  Hdf5RowsOptions options = Options();
  options.ranks = 2;
  options.rank = 1;
  options.block = 2;
  Hdf5Rows rows(options);
  EXPECT_EQ(Take(rows, 6), (std::vector<int>{2, 3, 1, 2, 0, 1}));
  EXPECT_EQ(rows.rows_consumed(), 12u);
}

// Blocks of 2, 2 and 1 rows in each epoch, which two ranks take alternately.
TEST_F(Hdf5RowsTest, BlocksEndWithTheEpoch) {
  AddFile("a.h5", 0, 5, 5);
  Hdf5RowsOptions options = Options();
  options.block = 2;
  options.whole_epochs = true;
  Hdf5Rows alone(options);
  for (const uint64_t left : {2, 1, 2, 1, 1, 2}) {
    EXPECT_EQ(alone.LeftOfBlock(), left);
    Take(alone, 1);
  }
  options.ranks = 2;
  Hdf5Rows first(options);
  EXPECT_EQ(Take(first, 6), (std::vector<int>{0, 1, 4, 2, 3, 0}));
  options.rank = 1;
  Hdf5Rows second(options);
  EXPECT_EQ(Take(second, 6), (std::vector<int>{2, 3, 0, 1, 4, 2}));
}

TEST_F(Hdf5RowsTest, NamesWhatIsWrong) {
  const auto expect_error = [&](const Hdf5RowsOptions& options, const std::string& part) {
    EXPECT_THAT(ErrorText<Error>([&] { Hdf5Rows rows(options); }), HasSubstr(part));
  };
  expect_error(Options(), "list.txt: cannot open");
  std::ofstream(list_) << "\n";
  expect_error(Options(), "names no HDF5 file");
  AddFile("a.h5", 0, 3, 2);
  expect_error(Options(), "dataset 'label' has 2 rows, 'data' has 3");
  Hdf5RowsOptions options = Options();
  options.datasets = {"data", "labels"};
  expect_error(options, "a.h5: no dataset 'labels'");
  options.list = folder_.path("a.h5");
  expect_error(options, "a.h5: an HDF5 file, where a text file that names HDF5 files is wanted");
}

}  // namespace
}  // namespace caffe::data
