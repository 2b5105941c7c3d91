// A table that keeps more bits than the rows that are taken of it was copied with its own size of
// elements, beyond the end of the rows.
#include <gtest/gtest.h>

#include "tests/support/embedded_rows.hpp"

namespace caffe {
namespace {

TEST(IssueEmbedIn16Bits, RowsAreThoseOfTheTable) {
  testing::ExpectRowsOfTheTable();
}

}  // namespace
}  // namespace caffe
