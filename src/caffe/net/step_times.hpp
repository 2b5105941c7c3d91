// StepTimes: a cache file of step times, per machine.
#pragma once

#include <map>
#include <string>

#include "caffe/plan/step_timer.hpp"

namespace caffe {

// One line per step, "<seconds>\t<key>", between a first line that names the format and a last line
// with their count. An incomplete file is ignored and rewritten. The file can be deleted at the
// cost of measuring again.
class StepTimes {
 public:
  // Reads the file of this device and version. Logs a warning if it cannot be read.
  explicit StepTimes(Device& device);

  // Returns a cached time, or measures it.
  double SecondsOf(const TimedStep& step);
  // Number of steps that were measured.
  int measured() const { return measured_; }
  // Writes the measured times, merged with those that others have written meanwhile. Logs a warning
  // if the folder is not writable.
  void Save() const;

 private:
  Device& device_;
  const std::string path_;  // empty if there is no cache folder
  std::map<std::string, double> seconds_;
  int measured_ = 0;
};

// $XDG_CACHE_HOME/cortado/step_times-<device>, or below $HOME/.cache; empty if neither is set.
std::string StepTimesPath(const Device& device);

}  // namespace caffe
