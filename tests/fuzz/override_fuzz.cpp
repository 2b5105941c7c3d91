// Changes fields of a solver with a net by path, as on a command line: one override per line.
#include <algorithm>

#include "caffe/io/overrides.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tests/fuzz/fuzz_input.hpp"

FUZZ_TARGET(override) {
  static const caffe::SolverParameter original = [] {
    caffe::SolverParameter param;
    caffe::ParseTextProto(R"(
      base_lr: 0.1 stepvalue: 10 stepvalue: 20 lr_policy: "fixed"
      net_param {
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
          inner_product_param { num_output: 2 weight_filler { type: "xavier" } } } })",
                          "target", &param);
    return param;
  }();
  caffe::SolverParameter param = original;
  for (std::string_view rest = caffe::fuzz::View(data, size); !rest.empty();) {
    const std::string assignment(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), assignment.size() + 1));
    caffe::fuzz::Try([&] { caffe::ApplyOverride(assignment, &param); });
  }
  return 0;
}
