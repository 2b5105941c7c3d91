// StepTimes: what steps take on one machine, in a file that outlives the process.
#pragma once

#include <map>
#include <string>

#include "caffe/plan/step_timer.hpp"

namespace caffe {

// One line per step, "<seconds>\t<key>", between a first line that names the format and a last line
// that counts them. A file that is not whole is ignored and written anew. Deleting it costs nothing
// but measuring again.
class StepTimes {
 public:
  // Reads the file of this device and version. A file that cannot be read is a warning.
  explicit StepTimes(Device& device);

  // Known, or measured now.
  double SecondsOf(const TimedStep& step);
  // How many steps were measured.
  int measured() const { return measured_; }
  // Writes what was measured, with what others have written since. A folder that cannot be written
  // is a warning.
  void Save() const;

 private:
  Device& device_;
  const std::string path_;  // empty: no folder for it
  std::map<std::string, double> seconds_;
  int measured_ = 0;
};

// $XDG_CACHE_HOME/cortado/step_times-<device>, or below $HOME/.cache; empty without either.
std::string StepTimesPath(const Device& device);

}  // namespace caffe
