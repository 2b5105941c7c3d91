// The user's configuration: defaults of flags and of solvers.
#pragma once

#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {

class UserDefaults {
 public:
  // Those of this process's environment: of the file that CAFFE_CONFIG names, of none where it is
  // empty, else of cortado/config.prototxt in XDG_CONFIG_HOME, which is ~/.config, if it is there.
  // Throws IoError or InvalidArgument where the file cannot be read, with its place.
  static const UserDefaults& Get();

  // Empty where there is none.
  const std::string& file() const { return file_; }
  // What decides which file it is, for people.
  const std::string& reason() const { return reason_; }
  const UserConfig& content() const { return content_; }
  // Sets the fields that `solver` has not; returns a line for each.
  std::vector<std::string> PutInto(SolverParameter* solver) const;

 private:
  UserDefaults();

  std::string file_, reason_;
  UserConfig content_;
};

}  // namespace caffe::tools
