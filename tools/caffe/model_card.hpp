// The head of a model's README.md, in the form of BVLC's model zoo:
//
//   ---
//   name: BVLC AlexNet Model
//   caffemodel: bvlc_alexnet.caffemodel
//   caffemodel_url: http://dl.caffe.berkeleyvision.org/bvlc_alexnet.caffemodel
//   sha1: 9116a64c0fbe4459d18f4bb6b56d647b63920377
//   ---
//
// and, of ours, further lines caffemodel_url with other addresses of the same file, git_blob in
// place of sha1, and labels: a file with the names of the classes, relative to the folder.
#pragma once

#include <string>
#include <vector>

#include "tools/caffe/fetch_file.hpp"

namespace caffe::tools {

// Where a model's weights are published.
struct ModelCard {
  std::string folder;
  std::string caffemodel;         // the file's name in that folder
  std::vector<std::string> urls;  // at least one
  Checksum checksum;
  std::string labels;  // empty where it names none

  std::string path() const { return folder + "/" + caffemodel; }
  std::string labels_path() const { return labels.empty() ? "" : folder + "/" + labels; }
};

// A folder, or the name of one in models/: in the working folder's, $CAFFE_ROOT's or the program's
// checkout or installation. Throws InvalidArgument where there is none or its README.md lacks one
// of the three fields, with the names of the models that have them.
ModelCard ReadModelCard(const std::string& name_or_folder);

// Whether the folder's README.md says where weights are published.
bool HasModelCard(const std::string& folder);

// Of all models in models/ whose weights are published, by name.
std::vector<ModelCard> PublishedModels();

}  // namespace caffe::tools
