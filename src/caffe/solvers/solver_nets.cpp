#include "caffe/solvers/solver_nets.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <array>

#include "caffe/common.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/io/layer_position.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/plugin.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solvers/batch_division.hpp"

namespace caffe {
namespace {

// Defaults of the phase, then the net's own state, then the solver's: later ones win.
void MergeState(Phase phase, const NetState& from_solver, NetParameter* net) {
  NetState state;
  state.set_phase(phase);
  state.MergeFrom(net->state());
  state.MergeFrom(from_solver);
  if (!from_solver.has_phase() && !net->state().has_phase()) state.set_phase(phase);
  *net->mutable_state() = state;
}

// One line per layer with parameters: what was copied, what was not, and why.
void LogTransfers(const std::vector<Net::WeightTransfer>& transfers) {
  size_t width = 0;
  for (const Net::WeightTransfer& one : transfers) width = std::max(width, one.layer.size());
  for (const Net::WeightTransfer& one : transfers) {
    const std::string name = one.layer + std::string(width - one.layer.size(), ' ');
    switch (one.outcome) {
      case Net::WeightTransfer::kCopied:
        LOG(INFO) << "  " << name << "  copied   " << one.blobs << " blobs, " << one.values
                  << " values";
        break;
      case Net::WeightTransfer::kKept:
        LOG(INFO) << "  " << name << "  kept     the file has no layer of this name";
        break;
      case Net::WeightTransfer::kIgnored:
        LOG(INFO) << "  " << name << "  ignored  the net has no layer of this name";
        break;
    }
  }
}

// A file of which nothing fits is that of another net.
void CheckSomeAreCopied(const std::string& file,
                        const std::vector<Net::WeightTransfer>& transfers) {
  std::array<int, 3> layers{};  // by outcome
  std::array<std::string, 3> first;
  for (const Net::WeightTransfer& one : transfers) {
    if (layers[one.outcome]++ == 0) first[one.outcome] = one.layer;
  }
  const int copied = layers[Net::WeightTransfer::kCopied];
  const int kept = layers[Net::WeightTransfer::kKept];
  const int ignored = layers[Net::WeightTransfer::kIgnored];
  Require(copied > 0 || kept == 0, file, ": none of the net's ", kept, " layers with parameters ('",
          first[Net::WeightTransfer::kKept], "', ...) takes its weights from this file, which has ",
          ignored, " others",
          ignored > 0 ? " ('" + first[Net::WeightTransfer::kIgnored] + "', ...)" : "",
          "; layers are matched by name: give the weights of this net, or rename its layers");
  LOG(INFO) << "  " << copied << " of the net's " << copied + kept
            << " layers with parameters take their weights from " << file;
}

}  // namespace

std::unique_ptr<Net> MakeTrainNet(const SolverParameter& param, const NetOptions& options,
                                  const PrepareNet& prepare) {
  for (const std::string& plugin : param.plugin()) LoadPlugin(plugin);
  if (param.allow_python()) AllowPythonLayers();
  const LenientReading reading(options.lenient);
  const int definitions =
      param.has_net() + param.has_net_param() + param.has_train_net() + param.has_train_net_param();
  Require(definitions == 1,
          "solver: ", definitions == 0 ? "no train net is given" : "several train nets are given",
          "; set exactly one of net, train_net, net_param, train_net_param");
  const std::string& file = param.has_train_net() ? param.train_net() : param.net();
  NetParameter net;
  if (param.has_train_net_param()) {
    net = param.train_net_param();
  } else if (param.has_net_param()) {
    net = param.net_param();
  } else {
    net = ReadNetOfSolver(param.has_train_net() ? "train_net" : "net", file);
  }
  MergeState(TRAIN, param.train_state(), &net);
  if (options.ranks > 1) {
    net = Net::FilterNet(net);
    const std::string reason = WhyBatchIsOfAll(param, net);
    LOG_IF(INFO, options.rank == 0)
        << options.ranks << " workers; batch_size is that of "
        << (reason.empty() ? std::string("each of them, as in BVLC Caffe")
                           : "all of them together, as in NVCaffe (" + reason + ")");
    if (!reason.empty()) DivideBatchSizes(options.ranks, &net);
  }
  if (prepare) WithLayerPosition(file, TRAIN, [&] { prepare(&net); });
  NetOptions of_file = options;
  of_file.file = file;
  return std::make_unique<Net>(net, of_file);
}

NetOptions TrainNetOptions(const SolverParameter& param, NetOptions options, int solver_states) {
  Require(param.memory_limit() >= 0 && param.memory_limit() < int64_t{1} << 40,
          "solver: memory_limit is ", param.memory_limit(), "; give MiB, or 0 for no limit");
  options.precision = param.precision();
  options.calibration = param.calibration();
  options.strict_fp32 = param.strict_fp32();
  options.deterministic = param.deterministic();
  options.memory_limit = param.memory_limit() << 20;
  options.solver_states = solver_states;
  return options;
}

NetOptions TestNetOptions(NetOptions train, const TestNetDefinition& definition) {
  train.with_backward = false;
  train.memory_limit = 0;
  train.file = definition.file;
  return train;
}

std::vector<TestNetDefinition> TestNetDefinitions(const SolverParameter& param, bool lenient) {
  const LenientReading reading(lenient);
  const bool has_generic = param.has_net() || param.has_net_param();
  const int own = param.test_net_param_size() + param.test_net_size();
  const int wanted = param.test_iter_size();
  Require(has_generic ? wanted >= own : wanted == own, "solver: ", wanted,
          " test_iter entries for ", own, " test nets; give one test_iter per test net");
  const int generic = has_generic ? wanted - own : 0;
  Require(own + generic == 0 || param.test_interval() > 0,
          "solver: there are test nets, but test_interval is ", param.test_interval(),
          "; set it to the iterations between tests");
  Require(param.test_state_size() == 0 || param.test_state_size() == own + generic,
          "solver: ", param.test_state_size(), " test_state entries for ", own + generic,
          " test nets; give none or one each");
  std::vector<TestNetDefinition> nets;
  for (const NetParameter& net : param.test_net_param()) nets.push_back({net, ""});
  for (const std::string& file : param.test_net())
    nets.push_back({ReadNetOfSolver("test_net", file), file});
  for (int i = 0; i < generic; ++i) {
    nets.push_back({param.has_net_param() ? param.net_param() : ReadNetOfSolver("net", param.net()),
                    param.net()});
  }
  for (size_t i = 0; i < nets.size(); ++i) {
    const NetState state =
        param.test_state_size() > 0 ? param.test_state(static_cast<int>(i)) : NetState();
    MergeState(TEST, state, &nets[i].param);
  }
  return nets;
}

void LoadWeights(const std::string& list, Net* net) {
  const std::vector<std::string> files = SplitByComma(list);
  Require(!files.empty(), "weights: '", list, "' names no file");
  for (const std::string& name : files) {
    LOG(INFO) << "Finetuning from " << name;
    const std::vector<Net::WeightTransfer> transfers = net->CopyTrainedLayersFrom(name);
    LogTransfers(transfers);
    CheckSomeAreCopied(name, transfers);
  }
}

}  // namespace caffe
