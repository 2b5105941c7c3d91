// Solver types by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/solver.hpp"

namespace caffe {

// Sorted: the values that SolverParameter.type may have.
CAFFE_EXPORT std::vector<std::string> SolverTypeList();

// Reads a solver prototxt and builds the solver.
CAFFE_EXPORT std::unique_ptr<Solver> MakeSolver(const std::string& file,
                                                SolverOptions options = {});

// The parts of a solver that other programs use.
// A solver prototxt, old fields upgraded.
CAFFE_EXPORT SolverParameter ReadSolverText(const std::string& file);
// The train net as the solver would build it. Exactly one of net, net_param, train_net and
// train_net_param must be given.
// `prepare` may change the definition, which has its state, before it is compiled.
using PrepareNet = std::function<void(NetParameter*)>;
CAFFE_EXPORT std::unique_ptr<Net> MakeTrainNet(const SolverParameter& param,
                                               const NetOptions& options,
                                               const PrepareNet& prepare = nullptr);
// Loads a comma-separated list of weight files; blanks around names are ignored.
CAFFE_EXPORT void LoadWeights(const std::string& list, Net* net);
// Logs a warning with the names of layers that still have what their fillers gave, after
// `transfers` from `files`. Only for nets of phase TEST: training may start from there.
CAFFE_EXPORT void WarnOfInitialWeights(const std::string& files,
                                       const std::vector<Net::WeightTransfer>& transfers,
                                       const Net& net);
// The state file of the latest iteration among the snapshots that runs of this solver file have
// written (see snapshot_prefix), if its weights are there too. States that cannot be read are
// skipped with a warning. Empty if there is none.
CAFFE_EXPORT std::string NewestSnapshot(const SolverParameter& param,
                                        const std::string& solver_file);
// Tensors that the solver keeps for each parameter: the states of its rule (1 for SGD), and 2 more
// with ema_decay.
CAFFE_EXPORT int SolverStatesPerParameter(const SolverParameter& param);

}  // namespace caffe
