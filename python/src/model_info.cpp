// Preprocessing and labels of nets, and nets for inference.
#include "caffe/model_info.hpp"

#include "bindings.hpp"
#include "caffe/deploy.hpp"

namespace caffe::python {

void BindModelInfo(py::module_& module) {
  module.def(
      "_model_info_of_weights",
      [](const py::object& files) {
        const std::string names = PathOf(files);
        return py::bytes(ModelInfoOfWeights(names).SerializeAsString());
      },
      py::arg("files"));
  module.def(
      "_describe_model",
      [](const std::string& bytes) {
        NetParameter param;
        Require(param.ParseFromString(bytes), "model_info: this message is not a NetParameter");
        return py::bytes(DescribeModel(param).SerializeAsString());
      },
      py::arg("net"));
  module.def(
      "_deploy_net",
      [](const Net& net, const std::vector<std::string>& inputs) {
        return py::bytes(DeployNet(net, inputs).SerializeAsString());
      },
      py::arg("net"), py::arg("inputs"));
}

}  // namespace caffe::python
