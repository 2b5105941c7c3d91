// The module libcaffe_interpreter: Python inside a program, for nets with layers written in it.
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

// Compiled packages (NumPy's) look for the interpreter's functions in the whole process; those of
// a module that was loaded for itself alone are hidden from them.
void ShowInterpreter() {
  const auto library = LibraryOf(reinterpret_cast<const void*>(&Py_InitializeEx));
  const void* shown = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  CAFFE_ASSERT(shown != nullptr, dlerror());
}

// Where package caffe lies that was built or installed with this library; empty when nowhere.
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

// Signals stay the program's, and the current folder is not searched for modules.
extern "C" PYBIND11_EXPORT void caffe_start_python() {
  caffe::python::ShowInterpreter();
  if (!Py_IsInitialized()) {
    pybind11::initialize_interpreter(/*init_signal_handlers=*/false, 0, nullptr,
                                     /*add_program_dir_to_path=*/false);
    PyEval_SaveThread();  // each call takes the interpreter for itself
  }
  caffe::python::ImportCaffe();
}
