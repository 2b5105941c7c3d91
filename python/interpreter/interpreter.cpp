// The module libcaffe_interpreter: runs Python inside a program, for nets with layers in Python.
#include <dlfcn.h>
#include <pybind11/embed.h>

#include <filesystem>
#include <string>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"

namespace caffe::python {
namespace {

namespace py = pybind11;

std::filesystem::path LibraryOf(const void* address) {
  Dl_info library;
  const bool is_known = dladdr(address, &library) != 0;
  CAFFE_ASSERT(is_known);
  return library.dli_fname;
}

// Makes the interpreter's symbols global: compiled packages (NumPy's) look for them in the whole
// process, but symbols of a module loaded with RTLD_LOCAL are hidden from them.
void ShowInterpreter() {
  const auto library = LibraryOf(reinterpret_cast<const void*>(&Py_InitializeEx));
  const void* shown = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  CAFFE_ASSERT(shown != nullptr, dlerror());
}

// The folder of the package that was built or installed with this library; empty if there is none.
std::string PackageFolder() {
  const auto lib =
      LibraryOf(reinterpret_cast<const void*>(&LayerRegistry::CreateLayer)).parent_path();
  for (const char* site : {"../python", "python3/dist-packages"}) {
    if (std::filesystem::exists(lib / site / "caffe" / "__init__.py")) return lib / site;
  }
  return "";
}

void ImportCaffe() {
  const py::gil_scoped_acquire gil;
  try {
    const py::object path = py::module_::import("sys").attr("path");
    const std::string folder = PackageFolder();
    if (!folder.empty()) path.attr("insert")(0, folder);
    py::module_::import("caffe");
    py::module_::import("caffe._caffe").attr("_set_hosted")();
    if (!folder.empty()) path.attr("remove")(folder);
  } catch (const py::error_already_set& error) {
    throw Unsupported(StrCat("Python's package caffe cannot be imported: ", error.what()));
  }
}

}  // namespace
}  // namespace caffe::python

// Leaves signals to the program, and does not search the current folder for modules.
extern "C" PYBIND11_EXPORT void caffe_start_python() {
  caffe::python::ShowInterpreter();
  if (!Py_IsInitialized()) {
    pybind11::initialize_interpreter(/*init_signal_handlers=*/false, 0, nullptr,
                                     /*add_program_dir_to_path=*/false);
    PyEval_SaveThread();  // each call acquires the interpreter's lock
  }
  caffe::python::ImportCaffe();
}
