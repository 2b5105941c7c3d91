// A net from its definition as text.
#pragma once

#include <memory>
#include <string>

#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"

namespace caffe::testing {

inline std::unique_ptr<Net> NetOf(const std::string& text) {
  NetParameter param;
  ParseTextProto(text, "net", &param);
  return std::make_unique<Net>(param);
}

}  // namespace caffe::testing
