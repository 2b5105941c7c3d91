// The rows that an Embed layer takes from its table, in each type.
#pragma once

namespace caffe::testing {

// Runs on the device of the current mode.
void ExpectRowsOfTheTable();

}  // namespace caffe::testing
