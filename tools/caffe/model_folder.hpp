// A folder with a model, as `caffe new` makes it.
#pragma once

#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {

// The folder has solver.prototxt, whose paths are relative to the folder, the nets that it names,
// deploy.prototxt, and the solver's snapshots. See docs/model_folders.md. It may also be a model of
// the zoo, whose README.md says where its weights are published.
class ModelFolder {
 public:
  // True if the path is a folder.
  static bool Is(const std::string& path);

  // Throws InvalidArgument if the folder holds no model.
  explicit ModelFolder(const std::string& path);

  // Throws InvalidArgument if the file does not exist.
  std::string deploy() const;
  // The path of train_val.prototxt, from which `caffe new` makes deploy.prototxt; empty if there is
  // no such file.
  std::string trained_net() const;
  // The test net of solver.prototxt, relative to the folder. Throws InvalidArgument if it names
  // none, or the file does not exist.
  std::string test_net() const;
  // The best weights (PREFIX_best.caffemodel) if training has kept them, else those of the newest
  // snapshot, else those of the highest iteration, whose state was removed, else the published
  // ones. Throws InvalidArgument if there are none yet.
  std::string Weights() const;
  // The content of model_info.prototxt; empty if there is no such file.
  ModelInfo Info() const;
  // The file of class names from the model's README.md; empty if it names none.
  std::string Labels() const;

  // The net that solver.prototxt trains, relative to the folder. Throws as test_net().
  std::string train_net() const;
  // Makes the folder the working folder, so that the paths in its files are found. Makes the
  // paths, and the comma-separated list of weights, absolute; empty ones stay. Throws IoError.
  void Enter(const std::vector<std::string*>& paths, std::string* weights = nullptr) const;

 private:
  // The net that a field of solver.prototxt names.
  std::string NetOfSolver(const std::string& net) const;
  std::string PathOf(const std::string& name) const;
  // Empty if there are none.
  std::string TrainedWeights() const;

  const std::string path_;
};

// If `solver` is a model's folder, enters it, as Enter() does, and makes `solver` the path of its
// solver from there. Returns whether it was a folder.
bool EnterFolderOfSolver(std::string* solver, const std::vector<std::string*>& paths,
                         std::string* weights = nullptr);
// If `net` is a model's folder, enters it and makes `net` the path of its test net from there;
// where no weights are given, they are the folder's. Returns whether it was a folder.
bool EnterFolderToTest(std::string* net, const std::vector<std::string*>& paths,
                       std::string* weights);

// A path as a word of a command that users copy into a shell; in quotes if it needs them.
std::string ShellWord(const std::string& path);

}  // namespace caffe::tools
