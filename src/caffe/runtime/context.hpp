// Context: a program that can run, with memory of its own for what it computes.
#pragma once

#include <memory>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/runtime/program_file.hpp"

namespace caffe::runtime {

// What contexts of one program share: its text and its weights, as kernels read them.
struct LoadedProgram {
  explicit LoadedProgram(ProgramFile file)
      : file(std::move(file)), packed(this->file.steps.size()) {}

  ProgramFile file;
  // On how many threads kernels were chosen: the order of their weights depends on it.
  int threads = 0;
  // By step: weights in the order of the step's kernel, and how many bytes they are; null where it
  // reads them as they are in the file.
  struct Packed {
    int operand = 0;
    std::shared_ptr<void> bytes;
    size_t size = 0;
  };
  std::vector<Packed> packed;
};

// One thread at a time; contexts of one program run beside each other.
class CAFFE_EXPORT Context {
 public:
  // Chooses kernels and takes memory. Throws Unsupported, naming the layer, where this processor
  // has no kernel.
  explicit Context(ProgramFile file);
  // Another one over the same weights, on as many threads as the first.
  Context(const Context& other);
  Context& operator=(const Context&) = delete;
  ~Context();

  size_t num_inputs() const;
  size_t num_outputs() const;
  const std::string& input_name(size_t i) const;
  const std::string& output_name(size_t i) const;
  // Memory that Run() reads and writes. Each input must be filled before each run.
  TensorView input(size_t i) const;
  TensorView output(size_t i) const;
  void Run();

 private:
  struct Step {
    Kernel kernel;
    std::vector<TensorView> inputs, outputs;
  };

  void Prepare();
  Step Choose(size_t index);
  TensorView View(int tensor) const;
  void Pack(size_t index, const Kernel& kernel, Step* step);
  void RunStep(const Step& step) const;
  // Weights that are kept as 8-bit numbers, as floats: for as long as the program lives, for
  // kernels that read them so, or only to be packed.
  void Unfold(int tensor);
  std::shared_ptr<void> Unfolded(const ProgramFile::Tensor& tensor) const;
  void DropConstants();

  const std::shared_ptr<LoadedProgram> program_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<void> activations_, workspace_;
  std::vector<Step> steps_;
};

}  // namespace caffe::runtime
