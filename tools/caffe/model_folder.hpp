// A folder that holds a model, as `caffe new` makes it.
#pragma once

#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {

// solver.prototxt, whose paths begin at the folder, and the nets that it names; deploy.prototxt;
// snapshots where the solver puts them. See docs/model_folders.md. Or a model of the zoo, whose
// README.md says where its weights are published.
class ModelFolder {
 public:
  // Whether a command's file is a folder.
  static bool Is(const std::string& path);

  // Throws InvalidArgument where it holds no model.
  explicit ModelFolder(const std::string& path);

  // Throws InvalidArgument where the file is not there.
  std::string deploy() const;
  // The net that solver.prototxt names for testing, a path from the folder on. Throws
  // InvalidArgument where it names none, or the file is not there.
  std::string test_net() const;
  // The best ones (PREFIX_best.caffemodel) where training has kept them, else those of the newest
  // snapshot, else the published ones. Throws InvalidArgument where nothing was trained or fetched
  // yet.
  std::string Weights() const;
  // What model_info.prototxt says; empty where there is none.
  ModelInfo Info() const;
  // The file of the classes' names that the model's README.md gives; empty where it gives none.
  std::string Labels() const;

  // Makes the folder the working folder, so that paths in its files are found. Paths that the
  // user gave, and lists of them with commas, stay what they were. Throws IoError.
  void Enter(const std::vector<std::string*>& given) const;

 private:
  std::string PathOf(const std::string& name) const;
  // Empty where nothing was trained yet.
  std::string NewestWeights() const;

  const std::string path_;
};

}  // namespace caffe::tools
