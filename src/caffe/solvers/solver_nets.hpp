// Which nets a solver trains and tests: the many ways in which a solver file can name them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

struct TestNetDefinition {
  NetParameter param;
  std::string file;         // empty where the solver holds the definition
  bool is_generic = false;  // the train net's definition
  // test_iter is not given: each record is scored once.
  bool is_whole_epoch = false;
  // Nothing names this test net but the layers of phase TEST in the train net's definition.
  bool is_implied = false;
};

// `options` with what the solver's fields say of its nets. Throws InvalidArgument for a
// memory_limit that is none.
NetOptions TrainNetOptions(const SolverParameter& param, NetOptions options, int solver_states);
// Of a test net beside a train net with these. Their `file` is that of a net_param, if it was read
// from one.
NetOptions TestNetOptions(NetOptions train, const TestNetDefinition& definition);

// test_net_param, then test_net, then the generic net for each remaining test_iter, with phase TEST
// and the test_state merged in. Without any test_iter, the generic net for each remaining
// test_state, or once where tests are asked for, there is no other test net and it has data of
// phase TEST. `lenient`: see NetOptions. Throws InvalidArgument when counts do not fit.
std::vector<TestNetDefinition> TestNetDefinitions(const SolverParameter& param, bool lenient);

}  // namespace caffe
