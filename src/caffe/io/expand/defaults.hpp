// Fields that layers of a type have unless they set them themselves.
#pragma once

#include <map>
#include <string>

#include "caffe/io/expand/text_tree.hpp"

namespace caffe::expand {

class Defaults {
 public:
  // Takes `defaults { type: "..." ... }`. Fields of later defaults of a type take precedence over
  // those of earlier ones. Throws Mistake. Returns the type.
  std::string Add(const Field& field);

  // Adds fields that a layer of this type does not have. A message gets those that it lacks; a
  // repeated field is either the layer's or that of the defaults.
  void Complete(const std::string& type, Fields* layer) const;

 private:
  std::map<std::string, Fields> by_type_;
};

}  // namespace caffe::expand
