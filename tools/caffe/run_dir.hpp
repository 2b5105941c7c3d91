// The folder in which `caffe train` keeps the records of a run.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "caffe/run_folder.hpp"

namespace caffe::tools {

class RunDirFlags {
 public:
  // --run_dir, --histograms
  void Add(CLI::App& app);

  // The folder; the caller may adjust it when it changes the working folder.
  std::string* folder() { return &folder_; }
  // Without --run_dir, each run gets a numbered folder below `parent`: the newest one if it
  // resumes, else the next number.
  void NumberRuns(const std::string& parent) { parent_ = parent; }
  bool is_given() const { return !folder_.empty() || !parent_.empty(); }
  // Null if no folder was given. `resumes`: see RunFolder.
  std::unique_ptr<RunFolder> Open(bool resumes) const;

 private:
  std::string NumberedFolder(bool resumes) const;

  std::string folder_, parent_;
  int histograms_ = 0;
};

}  // namespace caffe::tools
