// The timeline of a net's plan, from which caffe/scaling.hpp predicts what training on many ranks
// takes.
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

// Of a net that is planned with backward. `times` are those of its plan. `passes` forward and
// backward passes make a step (iter_size), at least 1. Calls of the host take no time.
CAFFE_EXPORT StepTimeline TimelineOf(const Net& net, const PlanTimes& times, int passes = 1);

// Nets that this thread plans and measures from now on are those of one of `ranks_on_machine`
// processes of this machine, which share its processors as in training. Returns the number of
// threads of each.
CAFFE_EXPORT int UseThreadsOfRank(int ranks_on_machine);

// Processes on machines like this one, connected by TCP, whose messages cost `host`; or GPUs of the
// kind that `net` is planned for, connected by NCCL. `ranks_per_machine`: at least 1. What is not
// known here has no limit: the network between machines, and the links of a GPU that is there.
CAFFE_EXPORT Network NetworkOf(const Net& net, int ranks_per_machine, const HostCost& host);

// A row of the table: training on so many ranks.
struct ScalingRow {
  std::string device;  // that the net is planned for, with its threads
  StepTimeline timeline;
  Network network;
  ScalingPrediction as_set;  // with reduce_buckets of the net
  ScalingPrediction best;    // with the best number of buckets
};
CAFFE_EXPORT ScalingRow PredictRow(const Net& net, const StepTimeline& timeline,
                                   const Network& network, int ranks);

// The table of `caffe plan --ranks`, and the same as JSON; at least one row. `net`: of the first
// row.
CAFFE_EXPORT std::string FormatScaling(const Net& net, const std::vector<ScalingRow>& rows);
CAFFE_EXPORT std::string FormatScalingJson(const Net& net, const std::vector<ScalingRow>& rows);

}  // namespace caffe
