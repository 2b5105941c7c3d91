// RunFile: run.json, which describes the sessions of a run folder.
#pragma once

#include <string>

#include "caffe/runs/run.pb.h"
#include "caffe/training_observer.hpp"

namespace caffe::runs {

class RunFile {
 public:
  // Reads the existing file. Throws InvalidArgument if the folder is not a run folder and, if
  // `resumes` is false, if it holds a run with snapshots or one that has not ended.
  RunFile(const std::string& folder, bool resumes);

  // Number of training sessions, including this one.
  int sessions() const { return run_.sessions_size(); }
  // Rewrite the file. Throw IoError.
  void Start(const TrainingStart& start);
  void End(const TrainingEnd& end);

 private:
  void Write() const;

  const std::string path_;
  Run run_;
};

}  // namespace caffe::runs
