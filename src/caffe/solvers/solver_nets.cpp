#include "caffe/solvers/solver_nets.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <set>

#include "caffe/common.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/io/layer_position.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/model_info.hpp"
#include "caffe/net/weights.hpp"
#include "caffe/plugin.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solvers/batch_division.hpp"
#include "caffe/solvers/run_length.hpp"

namespace caffe {
namespace {

// Merges the defaults of the phase, then the net's own state, then the solver's: later ones win.
void MergeState(Phase phase, const NetState& from_solver, NetParameter* net) {
  NetState state;
  state.set_phase(phase);
  state.MergeFrom(net->state());
  state.MergeFrom(from_solver);
  if (!from_solver.has_phase() && !net->state().has_phase()) state.set_phase(phase);
  *net->mutable_state() = state;
}

// True if there is a data layer for phase TEST only.
bool HasTestData(const NetParameter& net) {
  return std::ranges::any_of(net.layer(), [](const LayerParameter& layer) {
    const auto is_of = [](const auto& rules, Phase phase) {
      return std::ranges::any_of(
          rules, [&](const auto& rule) { return rule.has_phase() && rule.phase() == phase; });
    };
    return layer.bottom_size() == 0 &&
           (is_of(layer.include(), TEST) || is_of(layer.exclude(), TRAIN));
  });
}

// Adds the ModelInfo that snapshots store with the net. Unreadable class names must not prevent
// training.
void PutModelInfo(const std::string& file, NetParameter* net) {
  try {
    const ModelInfo info = DescribeModel(*net);
    if (info.ByteSizeLong() > 0) *net->mutable_model_info() = info;
  } catch (const Error& error) {
    LOG(WARNING) << file << ": the weights will not say what the net's input and answers mean: "
                 << error.what();
  }
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
  const std::string& named = param.has_train_net() ? param.train_net() : param.net();
  const std::string& file = named.empty() && param.has_net_param() ? options.file : named;
  NetParameter net;
  if (param.has_train_net_param()) {
    net = param.train_net_param();
  } else if (param.has_net_param()) {
    net = param.net_param();
  } else {
    net = ReadNetOfSolver(param.has_train_net() ? "train_net" : "net", named);
  }
  MergeState(TRAIN, param.train_state(), &net);
  if (options.allocate) PutModelInfo(file, &net);
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
  train.weights_change = true;
  train.memory_limit = 0;
  train.whole_epochs = definition.is_whole_epoch;
  if (!definition.is_generic || !definition.file.empty()) train.file = definition.file;
  return train;
}

std::vector<TestNetDefinition> TestNetDefinitions(const SolverParameter& param, bool lenient) {
  const LenientReading reading(lenient);
  const bool has_generic = param.has_net() || param.has_net_param();
  const int own = param.test_net_param_size() + param.test_net_size();
  const bool is_whole_epoch = param.test_iter_size() == 0;
  const bool is_asked = param.test_interval() > 0 || TestsEpochs(param);
  const NetParameter shared = !has_generic            ? NetParameter()
                              : param.has_net_param() ? param.net_param()
                                                      : ReadNetOfSolver("net", param.net());
  int wanted = param.test_iter_size();
  bool is_implied = false;
  if (is_whole_epoch) {
    wanted = has_generic ? std::max(own, param.test_state_size()) : own;
    is_implied = wanted == 0 && is_asked && HasTestData(shared);
    if (is_implied) wanted = 1;
  }
  Require(has_generic ? wanted >= own : wanted == own, "solver: ", wanted,
          " test_iter entries for ", own,
          " test nets; give one test_iter per test net, or none "
          "to score each record once");
  const int generic = has_generic ? wanted - own : 0;
  Require(own + generic == 0 || is_asked, "solver: there are test nets, but test_interval is ",
          param.test_interval(), "; set it to the iterations between tests");
  Require(param.test_state_size() == 0 || param.test_state_size() == own + generic,
          "solver: ", param.test_state_size(), " test_state entries for ", own + generic,
          " test nets; give none or one each");
  std::vector<TestNetDefinition> nets;
  for (const NetParameter& net : param.test_net_param()) nets.push_back({net, ""});
  for (const std::string& file : param.test_net())
    nets.push_back({ReadNetOfSolver("test_net", file), file});
  for (int i = 0; i < generic; ++i) {
    nets.push_back({shared, param.net(), /*is_generic=*/true});
  }
  for (TestNetDefinition& net : nets) {
    net.is_whole_epoch = is_whole_epoch;
    net.is_implied = is_implied;
  }
  for (size_t i = 0; i < nets.size(); ++i) {
    const NetState state =
        param.test_state_size() > 0 ? param.test_state(static_cast<int>(i)) : NetState();
    MergeState(TEST, state, &nets[i].param);
  }
  return nets;
}

void LoadWeights(const std::string& list, Net* net) {
  const std::vector<std::string> files = SplitPaths(list);
  Require(!files.empty(), "weights: '", list, "' names no file");
  std::vector<Net::WeightTransfer> all;
  for (const std::string& name : files) {
    LOG(INFO) << "Finetuning from " << name;
    const std::vector<Net::WeightTransfer> transfers = net->CopyTrainedLayersFrom(name);
    LogTransfers(transfers);
    const auto count = [&](Net::WeightTransfer::Outcome outcome) {
      return std::count_if(transfers.begin(), transfers.end(),
                           [&](const auto& one) { return one.outcome == outcome; });
    };
    const auto copied = count(Net::WeightTransfer::kCopied);
    LOG(INFO) << "  " << copied << " of the net's " << copied + count(Net::WeightTransfer::kKept)
              << " layers with parameters take their weights from " << name;
    all.insert(all.end(), transfers.begin(), transfers.end());
  }
  WarnOfInitialWeights(list, all, *net);
}

void WarnOfInitialWeights(const std::string& files,
                          const std::vector<Net::WeightTransfer>& transfers, const Net& net) {
  if (net.phase() != TEST) return;
  std::set<std::string> loaded;
  for (const LayerParameter& layer : net.definition().layer()) {
    if (layer.blobs_size() > 0) loaded.insert(layer.name());
  }
  for (const Net::WeightTransfer& one : transfers) {
    if (one.outcome == Net::WeightTransfer::kCopied) loaded.insert(one.layer);
  }
  std::set<const Blob*> loaded_blobs;  // layers may share parameters
  for (const std::string& layer : net.layer_names()) {
    if (!loaded.contains(layer)) continue;
    for (const auto& blob : net.layer_params(layer)) loaded_blobs.insert(blob.get());
  }
  std::vector<std::string> names;
  for (const std::string& layer : net.layer_names()) {
    const auto& blobs = net.layer_params(layer);
    if (std::all_of(blobs.begin(), blobs.end(),
                    [&](const auto& blob) { return loaded_blobs.contains(blob.get()); }))
      continue;
    names.push_back("'" + layer + "'");
  }
  if (names.empty()) return;
  constexpr size_t kMostNamed = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  if (names.size() > kMostNamed) text += StrCat(" and ", names.size() - kMostNamed, " more");
  LOG(WARNING) << files << ": has no weights for " << names.size()
               << (names.size() == 1 ? " layer" : " layers") << " of this net, which keep"
               << (names.size() == 1 ? "s" : "") << " what the fillers gave: " << text
               << "; layers are matched by name";
}

}  // namespace caffe
