// If a table has wider elements than the rows taken from it, rows were copied with the table's
// element size, beyond the end of the result.
#include <gtest/gtest.h>

#include "tests/support/embedded_rows.hpp"

namespace caffe {
namespace {

TEST(IssueEmbedIn16Bits, RowsAreThoseOfTheTable) {
  testing::ExpectRowsOfTheTable();
}

}  // namespace
}  // namespace caffe
