// EventFile: a file of events that TensorBoard reads.
#pragma once

#include <string>

#include "caffe/proto/caffe.pb.h"
#include "caffe/runs/append_file.hpp"
#include "caffe/runs/event.pb.h"
#include "caffe/runs/run.pb.h"

namespace caffe::runs {

// In a folder, under a name that no other process chooses. Throws IoError, as Append does.
class EventFile {
 public:
  explicit EventFile(const std::string& folder);

  // One record: length, its check sum, the event, its check sum.
  void Append(Event event);

 private:
  AppendFile file_;
};

// `time`: seconds since 1970.
Event GraphEvent(double time, const NetParameter& net);
// Voids what an earlier process wrote of steps from this one on.
Event StartEvent(double time, int step);
// The numbers of a train or test record as curves: train/loss, test/accuracy, and of several test
// nets test0/accuracy, test1/accuracy.
Event ScalarEvent(const Metrics& metrics, bool has_several_tests);
// How values are spread, those that are not finite left out.
Summary::Value HistogramOf(const std::string& tag, const float* values, int64_t count);

}  // namespace caffe::runs
