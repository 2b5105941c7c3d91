// A folder that holds a model, as `caffe new` makes it.
#pragma once

#include <string>
#include <vector>

namespace caffe::tools {

// solver.prototxt, whose paths begin at the folder, and the nets that it names; deploy.prototxt;
// snapshots where the solver puts them. See docs/model_folders.md.
class ModelFolder {
 public:
  // Whether a command's file is a folder.
  static bool Is(const std::string& path);

  // Throws InvalidArgument where it holds no solver.prototxt.
  explicit ModelFolder(const std::string& path);

  // Throws InvalidArgument where the file is not there.
  std::string deploy() const;
  // Those of the newest snapshot. Throws InvalidArgument where nothing was trained yet.
  std::string Weights() const;

  // Makes the folder the working folder, so that paths in its files are found. Paths that the
  // user gave, and lists of them with commas, stay what they were. Throws IoError.
  void Enter(const std::vector<std::string*>& given) const;

 private:
  std::string PathOf(const std::string& name) const;

  const std::string path_;
};

}  // namespace caffe::tools
