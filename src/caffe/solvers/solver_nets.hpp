// Finds the nets that a solver trains and tests among the many ways to name them in a solver file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

struct TestNetDefinition {
  NetParameter param;
  std::string file;         // empty if the solver contains the definition
  bool is_generic = false;  // uses the train net's definition
  // True if test_iter is not given: each record is scored once.
  bool is_whole_epoch = false;
  // True if this test net is implied only by layers of phase TEST in the train net's definition.
  bool is_implied = false;
};

// Adds the solver's settings for its nets to `options`. Throws InvalidArgument for an invalid
// memory_limit.
NetOptions TrainNetOptions(const SolverParameter& param, NetOptions options, int solver_states);
// The options of a test net, derived from those of its train net. Their `file` is that of a
// net_param if it was read from one.
NetOptions TestNetOptions(NetOptions train, const TestNetDefinition& definition);

// Returns test_net_param, then test_net, then the generic net for each remaining test_iter, with
// phase TEST and the test_state merged in. Without any test_iter: the generic net for each
// remaining test_state, or once if tests are requested, no other test net exists and it has data of
// phase TEST. `lenient`: see NetOptions. Throws InvalidArgument if the counts do not match.
std::vector<TestNetDefinition> TestNetDefinitions(const SolverParameter& param, bool lenient);

}  // namespace caffe
