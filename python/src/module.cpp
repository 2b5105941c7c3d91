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

}  // namespace caffe::python

PYBIND11_MODULE(_caffe, module) {
  module.doc() = "Cortado's library. Use package caffe, which adds Python's conveniences.";
  FLAGS_log_year_in_prefix = false;  // as in the program's log, and as Caffe's parsers expect
  caffe::python::BindErrors(module);
  caffe::python::BindSettings(module);
  caffe::python::BindBlob(module);
  caffe::python::BindLayer(module);
  caffe::python::BindNet(module);
  caffe::python::BindSolver(module);
}
