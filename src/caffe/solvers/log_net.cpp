#include "caffe/solvers/log_net.hpp"

#include <glog/logging.h>
#include <google/protobuf/text_format.h>

#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/model_info.hpp"
#include "caffe/plan_report.hpp"

namespace caffe {
namespace {

constexpr double kMebibyte = 1 << 20;

std::string Text(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

void LogLayer(const LayerCall& call) {
  const std::string& name = call.layer->name();
  LOG(INFO) << "Creating Layer " << name;
  for (const Value* bottom : call.bottoms) LOG(INFO) << name << " <- " << bottom->name;
  for (const Value* top : call.tops) LOG(INFO) << name << " -> " << top->name;
  LOG(INFO) << "Setting up " << name;
  for (const Value* top : call.tops) {
    std::string dims;
    for (const int64_t dim : top->desc.shape.dims()) dims += StrCat(dim, " ");
    LOG(INFO) << "Top shape: " << dims << "(" << top->desc.shape.count() << ")";
  }
}

void LogMemory(const Net& net, int solver_states) {
  const PlanMemory memory = MemoryOfPlan(net, solver_states);
  const auto mebibytes = [](int64_t bytes) { return static_cast<double>(bytes) / kMebibyte; };
  LOG(INFO) << "Memory planned, MiB: " << mebibytes(memory.parameters) << " parameters, "
            << mebibytes(memory.gradients) << " gradients, " << mebibytes(memory.solver_state)
            << " solver, " << mebibytes(memory.activations) << " activations, "
            << mebibytes(memory.workspace) << " workspace, " << mebibytes(memory.total())
            << " in all";
}

}  // namespace

void LogSolver(const SolverParameter& param) {
  LOG(INFO) << "Initializing solver from parameters: \n" << Text(param);
}

void LogNet(const Net& net, const std::string& source, int solver_states) {
  const auto& calls = net.graph().calls;
  LOG(INFO) << "Creating " << source;
  LOG(INFO) << "Initializing net from parameters: \n" << Text(WithoutMeanImage(net.definition()));
  int64_t bytes = 0;
  for (const LayerCall& call : calls) {
    LogLayer(call);
    for (const Value* top : call.tops) bytes += static_cast<int64_t>(top->desc.bytes());
    LOG(INFO) << "Memory required for data: " << bytes;
  }
  // A test net has no backward pass.
  for (size_t i = net.graph().options.with_backward ? calls.size() : 0; i-- > 0;) {
    LOG(INFO) << net.layer_names()[i] << (calls[i].needs_backward ? " needs" : " does not need")
              << " backward computation.";
  }
  for (const std::string& name : net.output_names()) {
    LOG(INFO) << "This network produces output " << name;
  }
  LOG(INFO) << "Network initialization done.";
  LogMemory(net, solver_states);
}

void LogSizeOfNet(const Net& net, const std::string& source, int solver_states) {
  int64_t parameters = 0;
  for (const Net::LearnableParam& param : net.learnable_params()) parameters += param.blob->count();
  LOG(INFO) << "Creating " << source << ": " << net.graph().calls.size() << " layers, "
            << parameters << " parameters";
  LogMemory(net, solver_states);
}

std::string SourceOfTrainNet(const SolverParameter& param) {
  if (param.has_train_net_param()) return "training net specified in train_net_param.";
  if (param.has_train_net()) return "training net from train_net file: " + param.train_net();
  if (param.has_net_param()) return "training net specified in net_param.";
  return "training net from net file: " + param.net();
}

std::string SourceOfTestNet(const SolverParameter& param, int index) {
  const std::string start = StrCat("test net (#", index, ") specified by ");
  const int inlined = param.test_net_param_size(), own = inlined + param.test_net_size();
  if (index < inlined) return start + "test_net_param";
  if (index < own) return start + "test_net file: " + param.test_net(index - inlined);
  return start + (param.has_net_param() ? "net_param" : "net file: " + param.net());
}

}  // namespace caffe
