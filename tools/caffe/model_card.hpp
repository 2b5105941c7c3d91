// The head of a model's README.md, in the form of BVLC's model zoo:
//
//   ---
//   name: BVLC AlexNet Model
//   caffemodel: bvlc_alexnet.caffemodel
//   caffemodel_url: http://dl.caffe.berkeleyvision.org/bvlc_alexnet.caffemodel
//   sha1: 9116a64c0fbe4459d18f4bb6b56d647b63920377
//   ---
#pragma once

#include <string>
#include <vector>

namespace caffe::tools {

// Where a model's weights are published.
struct ModelCard {
  std::string folder;
  std::string caffemodel;  // the file's name in that folder
  std::string url;
  std::string sha1;  // 40 lower-case hexadecimal digits

  std::string path() const { return folder + "/" + caffemodel; }
};

// A folder, or the name of one in models/: in the working folder's, $CAFFE_ROOT's or the program's
// checkout or installation. Throws InvalidArgument where there is none or its README.md lacks one
// of the three fields, with the names of the models that have them.
ModelCard ReadModelCard(const std::string& name_or_folder);

// Of all models in models/ whose weights are published, by name.
std::vector<ModelCard> PublishedModels();

}  // namespace caffe::tools
