#include "caffe/cpu/processor.hpp"

#include <vector>

namespace caffe::cpu {
namespace {

std::vector<std::string (*)()>& Parts() {
  static std::vector<std::string (*)()> parts;
  return parts;
}

}  // namespace

DescriptionPart::DescriptionPart(std::string (*part)()) {
  Parts().push_back(part);
}

std::string DescriptionParts() {
  std::string text;
  for (std::string (*const part)() : Parts()) text += ", " + part();
  return text;
}

}  // namespace caffe::cpu
