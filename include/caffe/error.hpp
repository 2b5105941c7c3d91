// Errors and message building. The library throws; only tools end the process.
#pragma once

#include <ios>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "caffe/export.hpp"

namespace caffe {

// Base of everything the library throws. Text: "where: what with the values; what to do".
class CAFFE_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The definition or the call is wrong; the user can fix it.
class CAFFE_EXPORT InvalidArgument : public Error {
 public:
  using Error::Error;
};

// The request is valid, but this build cannot serve it.
class CAFFE_EXPORT Unsupported : public Error {
 public:
  using Error::Error;
};

// File system or data: missing, truncated, unwritable, or of the wrong kind.
class CAFFE_EXPORT IoError : public Error {
 public:
  using Error::Error;
};

// Driver, device memory, communication.
class CAFFE_EXPORT DeviceError : public Error {
 public:
  using Error::Error;
};

// A broken invariant of ours. Worth a bug report.
class CAFFE_EXPORT InternalError : public Error {
 public:
  using Error::Error;
};

// Concatenates anything that has operator<<. Throws std::bad_alloc if memory is short.
template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::ostringstream text;
  text.exceptions(std::ios_base::badbit);  // otherwise the stream swallows std::bad_alloc
  (text << ... << parts);
  return std::move(text).str();
}

// Throws InvalidArgument with the concatenated parts unless `condition` holds.
template <typename... Parts>
void Require(bool condition, const Parts&... parts) {
  if (!condition) throw InvalidArgument(StrCat(parts...));
}

// Runs `fn`; adds "<where>: " in front of the text of an Error and keeps its type. The caller that
// knows the place (net, reader) adds it once, so that layers need not.
template <typename Fn>
decltype(auto) WithContext(const std::string& where, Fn&& fn) {
  try {
    return std::forward<Fn>(fn)();
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(where + ": " + error.what());
  } catch (const Unsupported& error) {
    throw Unsupported(where + ": " + error.what());
  } catch (const IoError& error) {
    throw IoError(where + ": " + error.what());
  } catch (const DeviceError& error) {
    throw DeviceError(where + ": " + error.what());
  }
}

[[noreturn]] CAFFE_EXPORT void ThrowInternalError(const char* file, int line,
                                                  const std::string& what);

}  // namespace caffe

// Checks an invariant of ours (never user input). Costs a branch; stays in release builds.
#define CAFFE_ASSERT(condition, ...)                                                            \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      ::caffe::ThrowInternalError(__FILE__, __LINE__,                                           \
                                  ::caffe::StrCat(#condition, " " __VA_OPT__(, ) __VA_ARGS__)); \
  } while (false)
