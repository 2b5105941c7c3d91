// What an Embed layer takes of its table, in each type.
#pragma once

namespace caffe::testing {

// On the device of the mode that is set.
void ExpectRowsOfTheTable();

}  // namespace caffe::testing
