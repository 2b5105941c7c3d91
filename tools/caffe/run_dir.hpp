// Where `caffe train` keeps what a run leaves.
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

  bool is_given() const { return !folder_.empty(); }
  // Null without --run_dir. `resumes`: see RunFolder.
  std::unique_ptr<RunFolder> Open(bool resumes) const;

 private:
  std::string folder_;
  int histograms_ = 0;
};

}  // namespace caffe::tools
