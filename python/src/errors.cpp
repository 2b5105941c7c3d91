// Maps the library's exceptions to Python classes.
#include <cstring>

#include "bindings.hpp"

namespace caffe::python {
namespace {

// Each class derives from caffe.Error (a RuntimeError, as in Caffe) and a built-in class of Python.
struct Classes {
  PyObject *error, *invalid_argument, *unsupported, *io_error, *device_error, *internal_error;
};
Classes classes;

PyObject* MakeClass(py::module_& module, const char* name, const char* doc,
                    std::initializer_list<PyObject*> bases) {
  py::list list;
  for (PyObject* base : bases) list.append(py::handle(base));
  const std::string full_name = std::string("caffe.") + name;
  PyObject* made =
      PyErr_NewExceptionWithDoc(full_name.c_str(), doc, py::tuple(list).ptr(), nullptr);
  if (made == nullptr) throw py::error_already_set();
  module.add_object(name, py::reinterpret_borrow<py::object>(made));
  return made;
}

void Translate(std::exception_ptr thrown) {
  const auto raise = [](PyObject* type, const Error& error) {
    // Messages quote files and keys, whose bytes need not be UTF-8.
    PyObject* text = PyUnicode_DecodeUTF8(error.what(), std::strlen(error.what()), "replace");
    if (text != nullptr) PyErr_SetObject(type, text);
    Py_XDECREF(text);
  };
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const InvalidArgument& error) {
    raise(classes.invalid_argument, error);
  } catch (const Unsupported& error) {
    raise(classes.unsupported, error);
  } catch (const IoError& error) {
    raise(classes.io_error, error);
  } catch (const DeviceError& error) {
    raise(classes.device_error, error);
  } catch (const InternalError& error) {
    raise(classes.internal_error, error);
  } catch (const Error& error) {
    raise(classes.error, error);
  }
}

}  // namespace

void BindErrors(py::module_& module) {
  classes.error =
      MakeClass(module, "Error", "Base of everything that Cortado raises.", {PyExc_RuntimeError});
  classes.invalid_argument = MakeClass(module, "InvalidArgument",
                                       "The definition or the call is wrong; the text says how to "
                                       "fix it.",
                                       {classes.error, PyExc_ValueError});
  classes.unsupported = MakeClass(
      module, "Unsupported", "The request is sound, but this build has nothing that serves it.",
      {classes.error, PyExc_NotImplementedError});
  classes.io_error = MakeClass(module, "IoError",
                               "A file or data: missing, truncated, unwritable, of another kind.",
                               {classes.error, PyExc_OSError});
  classes.device_error =
      MakeClass(module, "DeviceError", "A driver or a device's memory.", {classes.error});
  classes.internal_error =
      MakeClass(module, "InternalError", "A broken invariant of Cortado: worth a bug report.",
                {classes.error});
  py::register_exception_translator(Translate);
}

}  // namespace caffe::python
