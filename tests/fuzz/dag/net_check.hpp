// Checks that a net computes the same for every way of compiling it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"
#include "tests/fuzz/dag/difference.hpp"

namespace caffe::fuzz {

struct Finding {
  std::string check;   // "reuse", "without fuse-epilogues", "precision", ...
  std::string reason;  // what differed, with both numbers
};

struct NetReport {
  std::vector<Finding> findings;
  std::string refusal;  // the user error with which every variant was refused
  std::map<std::string, ComparisonCount> counts;  // by check
};

// Compares two passes with different inputs; gradients of the second are added to those of the
// first.
//
//   keep-all with reuse, without backward, without each optional pass, without all of them:
//     for the net itself, and for the same net in double, where rounding hides nothing
//   "precision": the net itself with the net in double
//   "reshape": a net that has run another batch size in between with one that has not, bit by bit
//   "plan again": the plan's text, and the numbers bit by bit
//   "memory limit": a plan that recomputes activations with the usual one, bit by bit
//   "workers": two workers with one that has the joined batch, if the net allows that
//
// With `plants_errors`, one number of each variant is changed, which each check must notice.
NetReport CheckNet(const NetParameter& net, bool plants_errors = false);

}  // namespace caffe::fuzz
