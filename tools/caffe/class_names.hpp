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

  // The number where the class has no name.
  std::string Of(int number) const;

 private:
  std::map<int, std::string> names_;
};

}  // namespace caffe::tools
