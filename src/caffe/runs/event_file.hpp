// EventFile: a file of events for TensorBoard.
#pragma once

#include <string>

#include "caffe/proto/caffe.pb.h"
#include "caffe/runs/append_file.hpp"
#include "caffe/runs/event.pb.h"
#include "caffe/runs/run.pb.h"

namespace caffe::runs {

// Creates a file with a unique name in a folder. Throws IoError, as Append does.
class EventFile {
 public:
  explicit EventFile(const std::string& folder);

  // Appends one record: length, its checksum, the event, its checksum.
  void Append(Event event);

 private:
  AppendFile file_;
};

// `time`: seconds since 1970.
Event GraphEvent(double time, const NetParameter& net);
// Invalidates steps from this one on that an earlier process wrote.
Event StartEvent(double time, int step);
// Converts the numbers of a train or test record to curves: train/loss, test/accuracy or, with
// several test nets, test0/accuracy, test1/accuracy.
Event ScalarEvent(const Metrics& metrics, bool has_several_tests);
// The distribution of the finite values.
Summary::Value HistogramOf(const std::string& tag, const float* values, int64_t count);

}  // namespace caffe::runs
