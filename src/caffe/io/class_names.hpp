// Names of classes: files that give them, and what people read.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

class CAFFE_EXPORT ClassNames {
 public:
  // None.
  ClassNames() = default;
  // Those of class 0, 1, ...; an empty one is none.
  explicit ClassNames(std::vector<std::string> names) : names_(std::move(names)) {}
  // A file with a name in each line, from class 0 on, or a LabelMap in text form, which need not
  // name all classes. Throws IoError for a file that cannot be read, InvalidArgument for a wrong
  // LabelMap.
  explicit ClassNames(const std::string& file);

  // Whether it was a LabelMap.
  bool is_map() const { return is_map_; }
  const std::vector<std::string>& names() const { return names_; }
  // The number where the class has no name; control characters are made visible.
  std::string Of(int number) const;

 private:
  std::vector<std::string> names_;
  bool is_map_ = false;
};

}  // namespace caffe
