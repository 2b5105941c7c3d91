// Module caffe._caffe.
#include <glog/logging.h>
#include <unistd.h>

#include "bindings.hpp"

namespace caffe::python {

void CheckReadable(const std::string& file) {
  if (access(file.c_str(), R_OK) != 0) throw IoError("Could not open file " + file);
}

std::string PathOf(const py::handle& path) {
  const py::object bytes = py::module_::import("os").attr("fsencode")(path);
  const auto name = py::cast<std::string>(bytes);
  if (name.find('\0') != std::string::npos)
    throw py::value_error("a file name holds a null character");
  return name;
}

namespace {

// For an object whose __init__ was not called, or failed, pybind11 makes room in memory and hands
// that over, which nobody has filled. Here the making of room is the error.
void RefuseUnmadeObjects(const py::module_& module) {
  for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) {
    if (!py::isinstance<py::type>(value)) continue;
    auto* const type = reinterpret_cast<PyTypeObject*>(value.ptr());
    py::detail::type_info* const info = py::detail::get_type_info(type);
    if (info == nullptr || info->type != type) continue;  // an exception, or another module's
    info->operator_new = [](size_t) -> void* {
      throw py::type_error("the object was not made: its __init__ was not called, or failed");
    };
  }
}

}  // namespace
}  // namespace caffe::python

PYBIND11_MODULE(_caffe, module) {
  module.doc() = "Cortado's library. Use package caffe, which adds Python's conveniences.";
  FLAGS_log_year_in_prefix = false;  // as in the program's log, and as Caffe's parsers expect
  caffe::python::BindErrors(module);
  caffe::python::BindSettings(module);
  caffe::python::BindBlob(module);
  caffe::python::BindLayer(module);
  caffe::python::BindNet(module);
  caffe::python::BindModelInfo(module);
  caffe::python::BindDefinitions(module);
  caffe::python::BindSolver(module);
  caffe::python::RefuseUnmadeObjects(module);
}
