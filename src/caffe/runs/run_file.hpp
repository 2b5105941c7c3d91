// RunFile: run.json, which says of a run folder who trained what, when and how.
#pragma once

#include <string>

#include "caffe/runs/run.pb.h"
#include "caffe/training_observer.hpp"

namespace caffe::runs {

class RunFile {
 public:
  // Reads what the folder has. Throws InvalidArgument where that is no run, and, if `resumes` is
  // false, where it is a run with snapshots or one that has not ended.
  RunFile(const std::string& folder, bool resumes);

  // How many times training was started, this one included.
  int sessions() const { return run_.sessions_size(); }
  // Write the file anew. Throw IoError.
  void Start(const TrainingStart& start);
  void End(const TrainingEnd& end);

 private:
  void Write() const;

  const std::string path_;
  Run run_;
};

}  // namespace caffe::runs
