// StartThread: makes a std::thread, or throws an error that says what the thread was for.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "caffe/error.hpp"

namespace caffe {

template <typename Fn>
std::thread StartThread(const std::string& purpose, Fn&& fn) {
  try {
    return std::thread(std::forward<Fn>(fn));
  } catch (const std::system_error& error) {
    throw DeviceError(StrCat("cannot start a thread for ", purpose, ": ", error.what(),
                             "; ask for fewer workers or threads"));
  }
}

}  // namespace caffe
