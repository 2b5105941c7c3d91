#include "tools/caffe/model_folder.hpp"

#include <filesystem>
#include <system_error>

#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver_factory.hpp"
#include "tools/caffe/model_card.hpp"

namespace caffe::tools {
namespace {

namespace fs = std::filesystem;

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string Absolute(const std::string& path) {
  return path.empty() ? "" : fs::absolute(path).string();
}

}  // namespace

std::string ShellWord(const std::string& path) {
  const bool is_plain = path.find_first_not_of(
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789@%+=:,./-_") == std::string::npos;
  if (is_plain && !path.empty()) return path;
  std::string word = "'";
  for (const char letter : path) word += letter == '\'' ? "'\"'\"'" : std::string(1, letter);
  return word + "'";
}

bool ModelFolder::Is(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

ModelFolder::ModelFolder(const std::string& path) : path_(path) {
  Require(IsFile(PathOf("solver.prototxt")) || HasModelCard(path), path,
          ": is a folder without a solver.prototxt, so it holds no model; `caffe new` makes one of "
          "a folder of images");
}

std::string ModelFolder::PathOf(const std::string& name) const {
  return (fs::path(path_) / name).string();
}

std::string ModelFolder::deploy() const {
  const std::string file = PathOf("deploy.prototxt");
  Require(IsFile(file), path_,
          ": has no deploy.prototxt; make it from the trained net: caffe deploy ",
          ShellWord(PathOf("train_val.prototxt")), " --output=", ShellWord(file));
  return file;
}

std::string ModelFolder::trained_net() const {
  const std::string file = PathOf("train_val.prototxt");
  return IsFile(file) ? file : "";
}

ModelInfo ModelFolder::Info() const {
  ModelInfo info;
  if (const std::string file = PathOf("model_info.prototxt"); IsFile(file))
    ReadTextProto(file, &info);
  return info;
}

std::string ModelFolder::Labels() const {
  return HasModelCard(path_) ? ReadModelCard(path_).labels_path() : "";
}

std::string ModelFolder::test_net() const {
  const SolverParameter solver = ReadSolverText(PathOf("solver.prototxt"));
  return NetOfSolver(solver.test_net_size() > 0 ? solver.test_net(0) : solver.net());
}

std::string ModelFolder::train_net() const {
  const SolverParameter solver = ReadSolverText(PathOf("solver.prototxt"));
  return NetOfSolver(solver.has_train_net() ? solver.train_net() : solver.net());
}

std::string ModelFolder::NetOfSolver(const std::string& net) const {
  Require(!net.empty(), PathOf("solver.prototxt"),
          ": names no net in `net`, `train_net` or `test_net`; name one, whose path begins at the "
          "folder");
  Require(IsFile(PathOf(net)), PathOf("solver.prototxt"), ": names the net '", net,
          "', which is not there; paths begin at the folder ", path_);
  return net;
}

std::string ModelFolder::Weights() const {
  const std::string snapshot = IsFile(PathOf("solver.prototxt")) ? TrainedWeights() : "";
  if (!snapshot.empty()) return snapshot;
  Require(HasModelCard(path_), path_, ": holds no weights yet; train the model: caffe train ",
          ShellWord(path_));
  const ModelCard card = ReadModelCard(path_);
  Require(IsFile(card.path()), path_,
          ": holds no weights yet; get those that are published: "
          "caffe fetch-weights ",
          ShellWord(path_));
  return card.path();
}

std::string ModelFolder::TrainedWeights() const {
  SolverParameter solver = ReadSolverText(PathOf("solver.prototxt"));
  if (solver.has_snapshot_prefix()) solver.set_snapshot_prefix(PathOf(solver.snapshot_prefix()));
  return BestWeights(solver, PathOf("solver.prototxt"));
}

void ModelFolder::Enter(const std::vector<std::string*>& paths, std::string* weights) const {
  for (std::string* path : paths) *path = Absolute(*path);
  if (weights != nullptr) {
    std::string list;
    for (const std::string& file : SplitPaths(*weights))
      list += (list.empty() ? "" : ",") + Absolute(file);
    *weights = list;
  }
  std::error_code error;
  fs::current_path(path_, error);
  if (error) throw IoError(StrCat(path_, ": ", error.message()));
}

bool EnterFolderOfSolver(std::string* solver, const std::vector<std::string*>& paths,
                         std::string* weights) {
  if (!ModelFolder::Is(*solver)) return false;
  ModelFolder(*solver).Enter(paths, weights);
  *solver = "solver.prototxt";
  return true;
}

bool EnterFolderToTest(std::string* net, const std::vector<std::string*>& paths,
                       std::string* weights) {
  if (!ModelFolder::Is(*net)) return false;
  const ModelFolder folder(*net);
  *net = folder.test_net();
  if (weights->empty()) *weights = folder.Weights();
  folder.Enter(paths, weights);
  return true;
}

}  // namespace caffe::tools
