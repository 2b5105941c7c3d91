// Class names: reads files that contain them, and formats them for output.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

class CAFFE_EXPORT ClassNames {
 public:
  // No names.
  ClassNames() = default;
  // Names of the classes 0, 1, ...; an empty string means no name.
  explicit ClassNames(std::vector<std::string> names) : names_(std::move(names)) {}
  // Reads a file with one name per line, from class 0 on, or a LabelMap in text format, which need
  // not name all classes. Throws IoError for an unreadable file, InvalidArgument for an invalid
  // LabelMap.
  explicit ClassNames(const std::string& file);

  // True if the file was a LabelMap.
  bool is_map() const { return is_map_; }
  const std::vector<std::string>& names() const { return names_; }
  // The class's name, or its number if it has none; control characters are escaped.
  std::string Of(int number) const;

 private:
  std::vector<std::string> names_;
  bool is_map_ = false;
};

}  // namespace caffe
