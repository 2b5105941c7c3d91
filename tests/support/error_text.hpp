// The text of an error.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace caffe::testing {

// The text of the exception of type E that `call` throws; a test failure if it throws none. gmock's
// ThrowsMessage does the same, but is compiled again for each lambda, at ten times the cost.
template <typename E>
std::string ErrorText(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an exception";
  return "";
}

}  // namespace caffe::testing
