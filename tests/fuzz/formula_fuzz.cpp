// Parses formulas of Expression layers, and builds nets that compute them and their gradients.
#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tests/fuzz/fuzz_input.hpp"

FUZZ_TARGET(formula) {
  caffe::NetParameter param;
  param.set_force_backward(true);
  caffe::LayerParameter* formula = nullptr;
  for (const char* name : {"a", "b"}) {
    caffe::LayerParameter* input = param.add_layer();
    input->set_name(name);
    input->set_type("Input");
    input->add_top(name);
    caffe::BlobShape* shape = input->mutable_input_param()->add_shape();
    shape->add_dim(2);
    shape->add_dim(name[0] == 'a' ? 3 : 1);
  }
  formula = param.add_layer();
  formula->set_name("formula");
  formula->set_type("Expression");
  formula->add_bottom("a");
  formula->add_bottom("b");
  formula->add_top("y");
  formula->mutable_expression_param()->set_expr(std::string(caffe::fuzz::View(data, size)));
  caffe::fuzz::Try([&] {
    caffe::Net net(param);
    net.Forward();
    net.Backward();
  });
  return 0;
}
