// The head of a model's README.md, in the form of BVLC's model zoo:
//
//   ---
//   name: BVLC AlexNet Model
//   caffemodel: bvlc_alexnet.caffemodel
//   caffemodel_url: http://dl.caffe.berkeleyvision.org/bvlc_alexnet.caffemodel
//   sha1: 9116a64c0fbe4459d18f4bb6b56d647b63920377
//   ---
//
// Our extensions: more lines caffemodel_url with other addresses of the same file; git_blob instead
// of sha1; and labels, a file with the names of the classes, relative to the folder.
#pragma once

#include <string>
#include <vector>

#include "tools/caffe/fetch_file.hpp"

namespace caffe::tools {

// Where a model's weights are published.
struct ModelCard {
  std::string folder;
  std::string caffemodel;         // file name in the folder
  std::vector<std::string> urls;  // at least one
  Checksum checksum;
  std::string labels;  // empty if the card names none

  std::string path() const { return folder + "/" + caffemodel; }
  std::string labels_path() const { return labels.empty() ? "" : folder + "/" + labels; }
};

// Takes a folder, or the name of a folder in models/ of the working folder, of $CAFFE_ROOT, or of
// the program's checkout or installation. Throws InvalidArgument if there is no such folder or its
// README.md lacks one of the three fields; the error lists the models that have them.
ModelCard ReadModelCard(const std::string& name_or_folder);

// True if the folder's README.md says where weights are published.
bool HasModelCard(const std::string& folder);

// The cards of all models in models/ whose weights are published, by name.
std::vector<ModelCard> PublishedModels();

}  // namespace caffe::tools
