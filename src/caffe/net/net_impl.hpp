// The implementation of Net.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/core/thread_claim.hpp"
#include "caffe/net.hpp"
#include "caffe/net/active_plan.hpp"
#include "caffe/net/losses.hpp"
#include "caffe/net/net_memory.hpp"
#include "caffe/net/plan.hpp"
#include "caffe/net/training_net.hpp"

namespace caffe {

// "the net has no blob 'x'; did you mean 'y'?"
std::string NoSuchName(const char* what, const std::string& name,
                       const std::vector<std::string>& known);

struct Net::Impl {
  Impl(const NetParameter& definition, const NetOptions& options);

  void CreateLayers();
  void PrepareLayers();

  int last_layer() const { return static_cast<int>(source.layers.size()) - 1; }
  int IndexOfLayer(const std::string& name) const;  // throws InvalidArgument
  ThreadClaim::Scope Claim() { return {*claim, "net", source.param.name()}; }

  // Builds a net with the same definition and the current input shapes that shares our weights.
  // `self` is the net that owns this. Throws InvalidArgument if Caffe::mode() selects another
  // device.
  std::unique_ptr<Net> WithSameWeights(const Net& self, const NetOptions& options) const;
  void CheckLayers(const char* what, int first, int last) const;
  void AddCallback(std::vector<LayerCallback>* callbacks, LayerCallback callback);
  // Undoes a caller's reshaping of blobs that are not inputs.
  void RestorePlannedShapes();
  void Reshape();
  void ReshapeIfInputsWere();
  void ShowLossScale(const double* on_device);

  // The next pass, for callers other than solvers.
  TrainingPass NextPass();
  Executor::RunOptions OptionsOf(const TrainingPass& pass) const;
  // True if forward and backward are one run, because nothing may examine blobs in between.
  bool RunsBothAtOnce() const;
  void RunForwardBackward(const TrainingPass& pass);
  // Runs layers first to last, counted upwards in both directions.
  void Run(Direction direction, int first, int last, const TrainingPass& pass);
  void RunLayers(Direction direction, int first, int last, const TrainingPass& pass);
  void RunPlan(const Executor::RunOptions& run);
  float Loss(int first, int last) const;

  NetSource source;
  uint64_t seed = 0;
  std::vector<std::string> layer_names;
  NetMemory memory;
  ActivePlan plan;
  LossesInFlight losses;
  uint64_t pass = 0, next_pass = 0;  // of the last forward pass and of the next one
  std::vector<LayerCallback> before_forward, after_forward, before_backward, after_backward;
  std::shared_ptr<ThreadClaim> claim = std::make_shared<ThreadClaim>();
};

}  // namespace caffe
