// Gradients of matrix products.
#include "tests/layers/gradient_cases.hpp"

namespace caffe {
namespace {

void ProductsGradients(GradientCaseList& add) {
  const auto inner_product = [&](const std::string& name, const std::string& options) {
    add(Layer1("InnerProduct" + name, "2x3x4", "InnerProduct",
               StrCat("inner_product_param { num_output: 5 ", kGaussian, options, " }")));
  };
  inner_product("", "");
  inner_product("Transpose", "transpose: true");
  inner_product("Axis2", "axis: 2");
  inner_product("NoBias", "bias_term: false");
  for (const std::string a : {"", "transpose_a: true "}) {
    for (const std::string b : {"", "transpose_b: true "}) {
      struct Batch {
        const char *name, *of_a, *of_b;
      };
      for (const Batch& batch : {Batch{"", "2x", "2x"},
                                 {"SameA", "", "2x"},
                                 {"SameB", "2x3x", ""},
                                 {"Groups", "2x3x", "2x1x"},
                                 {"Outer", "3x1x", "1x2x"},
                                 {"Rows", "2x1x2x", "2x3x1x"}}) {
        add({StrCat("MatMul", a.empty() ? "N" : "T", b.empty() ? "N" : "T", batch.name),
             StrCat(batch.of_a, a.empty() ? "3x4 " : "4x3 ", batch.of_b, b.empty() ? "4x5" : "5x4"),
             StrCat("layer { name: 'l' type: 'MatMul' bottom: 'x0' bottom: 'x1' top: 'y' "
                    "matmul_param { ",
                    a, b, "} }")});
      }
    }
  }
}

const GradientCases products_gradients("products", ProductsGradients);

}  // namespace
}  // namespace caffe
