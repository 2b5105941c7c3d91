// RAII identifiers of the HDF5 library, its types and its error reasons. Included where the library
// is called.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

namespace caffe {

// Owns an identifier of the library and calls the function that closes its kind.
class Hdf5Handle {
 public:
  using Closer = herr_t (*)(hid_t);
  Hdf5Handle(hid_t id, Closer closer) : id_(id), closer_(closer) {}
  ~Hdf5Handle() {
    if (id_ >= 0) closer_(id_);
  }
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  Hdf5Handle& operator=(Hdf5Handle&&) = delete;

  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

  bool Close() { return closer_(std::exchange(id_, -1)) >= 0; }

 private:
  hid_t id_;
  Closer closer_;
};

// The library's innermost reason for the last failure, such as "no space left on device".
// Exceptions must not pass through the library, which would not release its resources.
inline std::string Hdf5Reason() {
  struct Visit {
    std::string reason;
    std::exception_ptr error;
  } visit;
  // Walking upward starts at the innermost call.
  const auto see = [](unsigned depth, const H5E_error2_t* error, void* data) -> herr_t {
    auto* const seen = static_cast<Visit*>(data);
    try {
      if (depth == 0 && error->desc) seen->reason = error->desc;
      return 0;
    } catch (...) {
      seen->error = std::current_exception();
      return -1;
    }
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, see, &visit);
  if (visit.error) std::rethrow_exception(visit.error);
  return visit.reason.empty() ? "unknown HDF5 error" : visit.reason;
}

// The library's memory type of values: float, double or int64_t.
template <typename T>
hid_t Hdf5TypeOf() {
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::is_same_v<T, int64_t>) return H5T_NATIVE_INT64;
}

// A location in a file for error texts: "weights.h5: '/data/conv1/0'".
inline std::string Hdf5Place(const std::string& path, const std::string& name) {
  return path + ": '" + name + "'";
}

}  // namespace caffe
