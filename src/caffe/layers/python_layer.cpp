#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"

namespace caffe {

// A layer written in Python can only be made where an interpreter runs; the Python module puts its
// own creator in place of this one.
static const LayerRegistrar layer_registrar_Python(
    "Python", [](const LayerParameter& param) -> std::shared_ptr<Layer> {
      throw Unsupported(StrCat("class '", param.python_param().layer(), "' of module '",
                               param.python_param().module(),
                               "' is written in Python, and this program holds no interpreter; run "
                               "the net from Python (import caffe; caffe.Net, caffe.get_solver)"));
    });

}  // namespace caffe
