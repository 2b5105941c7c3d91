// A net, or its definition, from text.
#pragma once

#include <memory>
#include <string>

#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"

namespace caffe::testing {

inline NetParameter ParseNet(const std::string& text) {
  NetParameter param;
  ParseTextProto(text, "net", &param);
  return param;
}

inline std::unique_ptr<Net> NetOf(const std::string& text) {
  return std::make_unique<Net>(ParseNet(text));
}

}  // namespace caffe::testing
