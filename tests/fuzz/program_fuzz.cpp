// Compiled programs with a correct checksum: reads them, finds their kernels, runs them.
#include "caffe/runtime/context.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

// Larger programs would be slow, not wrong.
bool IsSmall(const caffe::runtime::ProgramFile& program) {
  double operations = 0;
  for (const auto& tensor : program.tensors) {
    if (tensor.desc.bytes() > (1u << 22)) return false;
  }
  for (const auto& step : program.steps) {
    std::vector<caffe::TensorDesc> inputs, outputs;
    for (const int i : step.inputs)
      inputs.push_back(i < 0 ? caffe::TensorDesc{} : program.tensors[static_cast<size_t>(i)].desc);
    for (const int i : step.outputs)
      outputs.push_back(i < 0 ? caffe::TensorDesc{} : program.tensors[static_cast<size_t>(i)].desc);
    operations += step.op.Flops(inputs, outputs);
  }
  return operations < 1e8;
}

}  // namespace

FUZZ_TARGET(program) {
  return caffe::fuzz::Try([&] {
    caffe::runtime::ProgramFile program =
        caffe::runtime::ReadProgram(caffe::runtime::SealProgram(caffe::fuzz::View(data, size)));
    if (!IsSmall(program)) return;
    caffe::runtime::Context context(std::move(program));
    context.Run();
  });
}
