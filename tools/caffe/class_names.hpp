// Names of classes for people.
#pragma once

#include <map>
#include <string>

namespace caffe::tools {

class ClassNames {
 public:
  // A file with a name in each line, from class 0 on, or a LabelMap in text form. Empty: no names.
  // Throws IoError for a file that cannot be read, InvalidArgument for a wrong LabelMap.
  explicit ClassNames(const std::string& file);

  // Names in a file of lines; 0 for a LabelMap, which need not name all classes.
  int num_lines() const { return num_lines_; }
  // The number where the class has no name.
  std::string Of(int number) const;

 private:
  std::map<int, std::string> names_;
  int num_lines_ = 0;
};

}  // namespace caffe::tools
