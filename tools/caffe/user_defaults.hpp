// The user's configuration: defaults for flags and solvers.
#pragma once

#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {

class UserDefaults {
 public:
  // The configuration of this process's environment: the file that CAFFE_CONFIG names (none if it
  // is empty), else cortado/config.prototxt in XDG_CONFIG_HOME (by default ~/.config), if it
  // exists. Throws IoError or InvalidArgument, with the position, if the file cannot be read.
  static const UserDefaults& Get();

  // Empty if there is no file.
  const std::string& file() const { return file_; }
  // A sentence for users: why this file was chosen.
  const std::string& reason() const { return reason_; }
  const UserConfig& content() const { return content_; }
  // Sets the fields that `solver` does not set; returns a line for each.
  std::vector<std::string> PutInto(SolverParameter* solver) const;

 private:
  UserDefaults();

  std::string file_, reason_;
  UserConfig content_;
};

}  // namespace caffe::tools
