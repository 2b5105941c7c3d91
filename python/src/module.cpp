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

// Makes pybind11 refuse objects whose __init__ was not called, or failed. Otherwise it would
// allocate uninitialized memory for them and pass it on; here the allocation throws.
void RefuseUnmadeObjects(const py::module_& module) {
  for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) {
    if (!py::isinstance<py::type>(value)) continue;
    auto* const type = reinterpret_cast<PyTypeObject*>(value.ptr());
    py::detail::type_info* const info = py::detail::get_type_info(type);
    if (info == nullptr || info->type != type) continue;  // an exception, or of another module
    info->operator_new = [](size_t) -> void* {
      throw py::type_error("the object was not made: its __init__ was not called, or failed");
    };
  }
}

}  // namespace
}  // namespace caffe::python

PYBIND11_MODULE(_caffe, module) {
  module.doc() = "Cortado's library. Use package caffe, which adds Python's conveniences.";
  FLAGS_log_year_in_prefix = false;  // as in the program, and as parsers of Caffe's logs expect
  caffe::python::BindErrors(module);
  caffe::python::BindSettings(module);
  caffe::python::BindBlob(module);
  caffe::python::BindLayer(module);
  caffe::python::BindNet(module);
  caffe::python::BindModelInfo(module);
  caffe::python::BindImageInput(module);
  caffe::python::BindDefinitions(module);
  caffe::python::BindSolver(module);
  caffe::python::RefuseUnmadeObjects(module);
  const int is_refused = Py_AtExit(&caffe::python::GilReleased::AtInterpretersEnd);
  CAFFE_ASSERT(is_refused == 0);
}
