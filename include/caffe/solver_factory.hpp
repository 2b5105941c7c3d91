// Creates solvers by type name, and parts of solvers for other programs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/solver.hpp"

namespace caffe {

// The values that SolverParameter.type may have, sorted.
CAFFE_EXPORT std::vector<std::string> SolverTypeList();

// Reads a solver prototxt and builds the solver.
CAFFE_EXPORT std::unique_ptr<Solver> MakeSolver(const std::string& file,
                                                SolverOptions options = {});

// Reads a solver prototxt and upgrades old fields.
CAFFE_EXPORT SolverParameter ReadSolverText(const std::string& file);
// The train net as the solver would build it. Exactly one of net, net_param, train_net and
// train_net_param must be given. `prepare` may change the definition, whose state is already set,
// before it is compiled.
using PrepareNet = std::function<void(NetParameter*)>;
CAFFE_EXPORT std::unique_ptr<Net> MakeTrainNet(const SolverParameter& param,
                                               const NetOptions& options,
                                               const PrepareNet& prepare = nullptr);
// Loads a comma-separated list of weight files; blanks around names are ignored. Parts that
// together are the path of a file are one file.
CAFFE_EXPORT void LoadWeights(const std::string& list, Net* net);
// Logs a warning with the names of layers that keep their fillers' values after `transfers` from
// `files`. Only for nets of phase TEST, because training may start from such values.
CAFFE_EXPORT void WarnOfInitialWeights(const std::string& files,
                                       const std::vector<Net::WeightTransfer>& transfers,
                                       const Net& net);
// The state file of the latest iteration among the snapshots of this solver file's runs (see
// snapshot_prefix), that of the best model included, provided that its weights exist too. Unreadable states are skipped with a
// warning. Empty if there is none.
CAFFE_EXPORT std::string NewestSnapshot(const SolverParameter& param,
                                        const std::string& solver_file);

// The weights of a run to use: the best (PREFIX_best) if training has kept them, else those of the
// newest snapshot, else, if the states were removed, those of the highest iteration. Empty if there
// are none.
CAFFE_EXPORT std::string BestWeights(const SolverParameter& param, const std::string& solver_file);
// Tensors that the solver keeps for each parameter: the optimizer's states (1 for SGD), and 2 more
// with ema_decay.
CAFFE_EXPORT int SolverStatesPerParameter(const SolverParameter& param);

}  // namespace caffe
