#include "caffe/common.hpp"
#include "caffe/core/module.hpp"
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"

namespace caffe {
namespace {

// Starts Python in this process and imports package caffe, which replaces CreateInPython by its own
// creator (ReplaceCreator). In a Python program this has already happened.
void StartPython(const PythonParameter& param) {
  if (!PythonLayersAreAllowed()) {
    throw Unsupported(
        StrCat("class '", param.layer(), "' of module '", param.module(),
               "' would run Python code in this program; allow it by --allow_python, by "
               "allow_python: true in the solver or by caffe::AllowPythonLayers() in C++, if you "
               "trust where the net comes from"));
  }
  static const bool is_started = [&] {
    const auto start = reinterpret_cast<void (*)()>(LoadModule(
        "caffe_interpreter", "caffe_start_python",
        StrCat("class '", param.layer(), "' of module '", param.module(),
               "' is written in Python, which this program cannot start; run the net from Python "
               "(import caffe; caffe.Net, caffe.get_solver), or install what is missing")));
    start();
    return true;
  }();
  static_cast<void>(is_started);
}

std::shared_ptr<Layer> CreateInPython(const LayerParameter& param) {
  static thread_local bool is_asking = false;
  if (is_asking) {
    throw Unsupported(
        "the package caffe that Python imports belongs to another build of Cortado; take its "
        "folder out of PYTHONPATH");
  }
  StartPython(param.python_param());
  is_asking = true;
  struct Answered {
    ~Answered() { is_asking = false; }
  } answered;
  return LayerRegistry::CreateLayer(param);
}

const LayerRegistrar layer_registrar_Python("Python", CreateInPython);

}  // namespace
}  // namespace caffe
