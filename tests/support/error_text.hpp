// What an error says.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace caffe::testing {

// The text of the exception of type E that `call` throws; a test failure when it throws none.
// gmock's ThrowsMessage says the same, but is compiled again for each lambda, at ten times the
// cost.
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
