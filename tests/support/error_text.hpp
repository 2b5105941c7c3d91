// What an error says.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace caffe::testing {

// The text of the exception of type E that `call` throws; a test failure when it throws none.
template <typename E, typename Call>
std::string ErrorText(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an exception";
  return "";
}

}  // namespace caffe::testing
