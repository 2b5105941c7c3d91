#include "caffe/data/parsers/datum_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "caffe/error.hpp"
#include "tests/data/databases.hpp"

namespace caffe::data {
namespace {

using ::testing::ElementsAre;

TEST(DatumViewTest, PixelsStayInTheRecord) {
  const std::string record = NumberedDatum(3, 1, 2, 2).SerializeAsString();
  std::vector<float> floats;
  const DatumView datum = ParseDatum(record, &floats);
  EXPECT_EQ(datum.extents, (ImageExtents{1, 2, 2}));
  EXPECT_EQ(datum.label, 3);
  EXPECT_GE(datum.data.data(), record.data());
  EXPECT_LT(datum.data.data(), record.data() + record.size());
}

TEST(DatumViewTest, ReadsFloatsPackedOrNotAndNegativeLabels) {
  // Fields 1..3 (extents 1, 1, 2), 5 (label -1), 6 (floats 1 and -2) packed.
  const std::string packed(
      "\x08\x01\x10\x01\x18\x02\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
      "\x32\x08\x00\x00\x80\x3f\x00\x00\x00\xc0",
      27);
  Datum message;
  ASSERT_TRUE(message.ParseFromString(packed));
  for (const std::string& record : {packed, message.SerializeAsString()}) {
    std::vector<float> floats;
    const DatumView datum = ParseDatum(record, &floats);
    EXPECT_EQ(datum.label, -1);
    EXPECT_THAT(std::vector<float>(datum.floats, datum.floats + 2), ElementsAre(1, -2));
  }
}

// Whatever the bytes are, the result is a datum with valid values, or an IoError.
TEST(DatumViewTest, DamagedRecordsAreReadOrRefused) {
  std::mt19937 random(1);
  std::vector<float> floats;
  for (int round = 0; round < 20000; ++round) {
    std::string record = NumberedDatum(1, 1, 3, 4).SerializeAsString();
    for (int change = 0; change < 1 + round % 3; ++change) {
      record[random() % record.size()] = static_cast<char>(random());
    }
    record.resize(random() % (record.size() + 1));
    try {
      const DatumView datum = ParseDatum(record, &floats);
      if (!datum.encoded && datum.floats == nullptr) {
        EXPECT_EQ(datum.data.size(), static_cast<size_t>(datum.extents.count()));
      }
    } catch (const IoError&) {
      // The record is refused.
    }
  }
}

}  // namespace
}  // namespace caffe::data
