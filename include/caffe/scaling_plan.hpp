// Computes the timeline of a net's plan, from which caffe/scaling.hpp predicts the time of training
// on many ranks.
//
//   const TrainingPlan plan(ReadSolverText("solver.prototxt"), {.keep_all = false});
//   const StepTimeline timeline = TimelineOf(plan.train_net(), plan.Times());
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/net.hpp"
#include "caffe/plan_times.hpp"
#include "caffe/scaling.hpp"

namespace caffe {

// The timeline of a net that is planned with backward. `times` are those of its plan. `passes`
// (iter_size), at least 1, is the number of forward and backward passes in a step. Calls of the
// host take no time.
CAFFE_EXPORT StepTimeline TimelineOf(const Net& net, const PlanTimes& times, int passes = 1);

// From now on, nets that this thread plans and measures use the threads of one of
// `ranks_on_machine` processes, which share this machine's processors as in training. Returns the
// number of threads of each.
CAFFE_EXPORT int UseThreadsOfRank(int ranks_on_machine);

// Models processes on machines like this one, connected by TCP, whose messages cost `host`; or GPUs
// of the kind that `net` is planned for, connected by NCCL. `ranks_per_machine`: at least 1.
// Unknown bandwidths are unlimited: those of the network between machines and of the links of a GPU
// that is present.
CAFFE_EXPORT Network NetworkOf(const Net& net, int ranks_per_machine, const HostCost& host);

// A row of the table: training on a given number of ranks.
struct ScalingRow {
  std::string device;  // device and threads that the net is planned for
  StepTimeline timeline;
  Network network;
  ScalingPrediction as_set;  // with the net's reduce_buckets
  ScalingPrediction best;    // with the best number of buckets
};
CAFFE_EXPORT ScalingRow PredictRow(const Net& net, const StepTimeline& timeline,
                                   const Network& network, int ranks);

// The table of `caffe plan --ranks`, and the same as JSON; at least one row. `net`: the net of the
// first row.
CAFFE_EXPORT std::string FormatScaling(const Net& net, const std::vector<ScalingRow>& rows);
CAFFE_EXPORT std::string FormatScalingJson(const Net& net, const std::vector<ScalingRow>& rows);

}  // namespace caffe
