// Trains, tests and times a net, like the program `caffe` for Caffe.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <map>
#include <string>
#include <vector>

#include "boost/algorithm/string.hpp"
#include "caffe/caffe.hpp"
#include "caffe/util/signal_handler.h"

using caffe::Blob;
using caffe::Caffe;
using caffe::Layer;
using caffe::Net;
using caffe::shared_ptr;
using caffe::Solver;
using caffe::string;
using caffe::Timer;
using caffe::vector;
using std::ostringstream;

DEFINE_string(gpu, "", "Optional; run in GPU mode on given device IDs separated by ','.");
DEFINE_string(solver, "", "The solver definition protocol buffer text file.");
DEFINE_string(model, "", "The model definition protocol buffer text file.");
DEFINE_string(snapshot, "", "Optional; the snapshot solver state to resume training.");
DEFINE_string(weights, "", "Optional; the pretrained weights to initialize finetuning.");
DEFINE_int32(iterations, 50, "The number of iterations to run.");
DEFINE_string(sigint_effect, "stop", "Optional; action to take when a SIGINT signal is received.");
DEFINE_string(sighup_effect, "snapshot", "Optional; action to take for a SIGHUP signal.");

typedef int (*BrewFunction)();
typedef std::map<string, BrewFunction> BrewMap;
BrewMap g_brew_map;

#define RegisterBrewFunction(func)                       \
  namespace {                                            \
  class __Registerer_##func {                            \
   public: /* NOLINT */                                  \
    __Registerer_##func() { g_brew_map[#func] = &func; } \
  };                                                     \
  __Registerer_##func g_registerer_##func;               \
  }

caffe::SolverAction::Enum GetRequestedAction(const string& flag_value) {
  if (flag_value == "stop") return caffe::SolverAction::STOP;
  if (flag_value == "snapshot") return caffe::SolverAction::SNAPSHOT;
  if (flag_value == "none") return caffe::SolverAction::NONE;
  LOG(FATAL) << "Invalid signal effect \"" << flag_value << "\" was specified";
  return caffe::SolverAction::NONE;
}

int device_query() {
  LOG(INFO) << "Querying GPUs " << FLAGS_gpu;
  Caffe::SetDevice(0);
  Caffe::DeviceQuery();
  return 0;
}
RegisterBrewFunction(device_query);

int train() {
  CHECK_GT(FLAGS_solver.size(), 0u) << "Need a solver definition to train.";
  CHECK(!FLAGS_snapshot.size() || !FLAGS_weights.size())
      << "Give a snapshot to resume training or weights to finetune but not both.";
  caffe::SolverParameter solver_param;
  caffe::ReadSolverParamsFromTextFileOrDie(FLAGS_solver, &solver_param);
  if (FLAGS_gpu.size() == 0 &&
      solver_param.solver_mode() == caffe::SolverParameter_SolverMode_GPU) {
    LOG(INFO) << "Use CPU.";
  }
  Caffe::set_mode(Caffe::CPU);
  caffe::SignalHandler signal_handler(GetRequestedAction(FLAGS_sigint_effect),
                                      GetRequestedAction(FLAGS_sighup_effect));
  if (FLAGS_weights.size()) {
    solver_param.clear_weights();
    solver_param.add_weights(FLAGS_weights);
  }
  shared_ptr<Solver<float> > solver(caffe::SolverRegistry<float>::CreateSolver(solver_param));
  solver->SetActionFunction(signal_handler.GetActionFunction());
  if (FLAGS_snapshot.size()) {
    LOG(INFO) << "Resuming from " << FLAGS_snapshot;
    solver->Restore(FLAGS_snapshot.c_str());
  }
  LOG(INFO) << "Starting Optimization";
  solver->Solve();
  LOG(INFO) << "Optimization Done.";
  return 0;
}
RegisterBrewFunction(train);

int test() {
  CHECK_GT(FLAGS_model.size(), 0u) << "Need a model definition to score.";
  CHECK_GT(FLAGS_weights.size(), 0u) << "Need model weights to score.";
  Caffe::set_mode(Caffe::CPU);
  Net<float> caffe_net(FLAGS_model, caffe::TEST);
  caffe_net.CopyTrainedLayersFrom(FLAGS_weights);
  vector<int> test_score_output_id;
  vector<float> test_score;
  float loss = 0;
  for (int i = 0; i < FLAGS_iterations; ++i) {
    float iter_loss;
    const vector<Blob<float>*>& result = caffe_net.Forward(&iter_loss);
    loss += iter_loss;
    int idx = 0;
    for (size_t j = 0; j < result.size(); ++j) {
      const float* result_vec = result[j]->cpu_data();
      for (int k = 0; k < result[j]->count(); ++k, ++idx) {
        if (i == 0) {
          test_score.push_back(result_vec[k]);
          test_score_output_id.push_back(j);
        } else {
          test_score[idx] += result_vec[k];
        }
      }
    }
  }
  LOG(INFO) << "Loss: " << loss / FLAGS_iterations;
  for (size_t i = 0; i < test_score.size(); ++i) {
    const int index = caffe_net.output_blob_indices()[test_score_output_id[i]];
    LOG(INFO) << caffe_net.blob_names()[index] << " = " << test_score[i] / FLAGS_iterations
              << " (weight " << caffe_net.blob_loss_weights()[index] << ")";
  }
  return 0;
}
RegisterBrewFunction(test);

int time() {
  CHECK_GT(FLAGS_model.size(), 0u) << "Need a model definition to time.";
  Caffe::set_mode(Caffe::CPU);
  Net<float> caffe_net(FLAGS_model, caffe::TRAIN);
  float initial_loss;
  caffe_net.Forward(&initial_loss);
  LOG(INFO) << "Initial loss: " << initial_loss;
  caffe_net.Backward();
  const vector<shared_ptr<Layer<float> > >& layers = caffe_net.layers();
  const vector<vector<Blob<float>*> >& bottom_vecs = caffe_net.bottom_vecs();
  const vector<vector<Blob<float>*> >& top_vecs = caffe_net.top_vecs();
  const vector<vector<bool> >& bottom_need_backward = caffe_net.bottom_need_backward();
  vector<double> forward_time(layers.size()), backward_time(layers.size());
  Timer total_timer, timer;
  total_timer.Start();
  for (int j = 0; j < FLAGS_iterations; ++j) {
    for (size_t i = 0; i < layers.size(); ++i) {
      timer.Start();
      layers[i]->Forward(bottom_vecs[i], top_vecs[i]);
      forward_time[i] += timer.MicroSeconds();
    }
    for (int i = static_cast<int>(layers.size()) - 1; i >= 0; --i) {
      timer.Start();
      layers[i]->Backward(top_vecs[i], bottom_need_backward[i], bottom_vecs[i]);
      backward_time[i] += timer.MicroSeconds();
    }
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const caffe::string& layername = layers[i]->layer_param().name();
    LOG(INFO) << layername << " forward: " << forward_time[i] / 1000 / FLAGS_iterations << " ms.";
    LOG(INFO) << layername << " backward: " << backward_time[i] / 1000 / FLAGS_iterations << " ms.";
  }
  total_timer.Stop();
  LOG(INFO) << "Total Time: " << total_timer.MilliSeconds() << " ms.";
  return 0;
}
RegisterBrewFunction(time);

int main(int argc, char** argv) {
  FLAGS_alsologtostderr = 1;
  gflags::SetUsageMessage("command line brew");
  caffe::GlobalInit(&argc, &argv);
  if (argc != 2 || !g_brew_map.count(argv[1])) {
    gflags::ShowUsageWithFlagsRestrict(argv[0], "tools/caffe");
    return 1;
  }
  return g_brew_map[argv[1]]();
}
