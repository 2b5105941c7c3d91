// What the parts of module _caffe share. Each Bind function adds its part to the module.
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
void BindDefinitions(py::module_& module);
void BindSolver(py::module_& module);

// The parameter blobs of one layer.
struct BlobVec {
  std::vector<std::shared_ptr<Blob>> blobs;
  bool can_grow = false;  // until the layer has been set up
};

// What Python sees of a layer, and what classes of Python layers derive from.
struct LayerView {
  LayerParameter param;
  std::shared_ptr<BlobVec> blobs = std::make_shared<BlobVec>();
};

// The layer's own object where it is written in Python, else a view of it.
py::object ViewOf(const std::shared_ptr<Layer>& layer,
                  const std::vector<std::shared_ptr<Blob>>& params);

// A name of the prototxt, whose bytes need not be UTF-8: Latin-1 or GBK becomes what
// name.encode("utf-8", "surrogateescape") turns back, as in names of files.
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

// Throws caffe::IoError "Could not open file F" unless F can be read.
void CheckReadable(const std::string& file);
// A file name: str, bytes or os.PathLike.
std::string PathOf(const py::handle& path);
// "bf16" as BF16. Throws InvalidArgument for other names.
Precision PrecisionOf(std::string name);

// What a Python function returns. Throws what it raises.
template <typename... Arguments>
py::object Call(const py::handle& function, const Arguments&... arguments) {
  const py::tuple all = py::make_tuple(arguments...);
  PyObject* const result =
      UntilTheEnd([&] { return PyObject_CallObject(function.ptr(), all.ptr()); });
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

// A Python function that C++ keeps: it may be called and dropped without the interpreter's lock.
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

// A member as a function of a reference to an object of the bound class. By pointer, pybind11 calls
// a member of None, or of an object whose construction failed, with a null pointer.
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

// float32 view of a blob's values (or gradients) that writes through.
py::array DataOf(Blob& blob);

}  // namespace caffe::python
