// Shared by the parts of module _caffe. Each Bind function adds its part to the module.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caffe/caffe.hpp"
#include "gil.hpp"

namespace caffe::python {

namespace py = pybind11;
using ReleaseGil = py::call_guard<GilReleased>;

void BindErrors(py::module_& module);
void BindSettings(py::module_& module);
void BindBlob(py::module_& module);
void BindLayer(py::module_& module);
void BindNet(py::module_& module);
void BindModelInfo(py::module_& module);
void BindImageInput(py::module_& module);
void BindDefinitions(py::module_& module);
void BindSolver(py::module_& module);

// The parameter blobs of one layer.
struct BlobVec {
  std::vector<std::shared_ptr<Blob>> blobs;
  bool can_grow = false;  // true until the layer is set up
};

// Python's view of a layer, and the base class of layers written in Python.
struct LayerView {
  LayerParameter param;
  std::shared_ptr<BlobVec> blobs = std::make_shared<BlobVec>();
};

// The layer's Python object if the layer is written in Python, else a view of it.
py::object ViewOf(const std::shared_ptr<Layer>& layer,
                  const std::vector<std::shared_ptr<Blob>>& params);

// A name from a prototxt, whose bytes need not be UTF-8: other encodings, such as Latin-1 or GBK,
// get surrogates, which name.encode("utf-8", "surrogateescape") turns back, as for file names.
inline py::str TextOf(const std::string& name) {
  PyObject* const text =
      PyUnicode_DecodeUTF8(name.data(), static_cast<py::ssize_t>(name.size()), "surrogateescape");
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(text);
}
inline py::list TextsOf(const std::vector<std::string>& names) {
  py::list texts;
  for (const std::string& name : names) texts.append(TextOf(name));
  return texts;
}

// Throws caffe::IoError "Could not open file F" if F cannot be read.
void CheckReadable(const std::string& file);
// A file name: str, bytes or os.PathLike.
std::string PathOf(const py::handle& path);
// Parses "bf16" to BF16. Throws InvalidArgument for unknown names.
Precision PrecisionOf(std::string name);

// Calls a Python function and returns its result. Throws the exception that it raises.
template <typename... Arguments>
py::object Call(const py::handle& function, const Arguments&... arguments) {
  const py::tuple all = py::make_tuple(arguments...);
  PyObject* const result =
      UntilTheEnd([&] { return PyObject_CallObject(function.ptr(), all.ptr()); });
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

// A Python function for C++ to keep: it may be called and destroyed without the interpreter's lock.
template <typename... Arguments>
std::function<void(Arguments...)> KeptFunction(py::function function) {
  std::shared_ptr<py::function> kept(new py::function(std::move(function)), [](py::function* last) {
    const GilAcquired gil;
    delete last;
  });
  return [kept](Arguments... arguments) {
    const GilAcquired gil;
    Call(*kept, arguments...);
  };
}

// Binds a member as a function of a reference. With a pointer, pybind11 would pass null for None,
// and for an object whose construction failed.
template <typename Self, typename Object, typename Result, typename... Arguments>
auto Method(Result (Object::*member)(Arguments...) const) {
  return [member](const Self& self, Arguments... arguments) -> Result {
    return (self.*member)(std::forward<Arguments>(arguments)...);
  };
}
template <typename Self, typename Object, typename Result, typename... Arguments>
auto Method(Result (Object::*member)(Arguments...)) {
  return [member](Self& self, Arguments... arguments) -> Result {
    return (self.*member)(std::forward<Arguments>(arguments)...);
  };
}

// A float32 view of a blob's values (or gradients); writes change the blob.
py::array DataOf(Blob& blob);

}  // namespace caffe::python
