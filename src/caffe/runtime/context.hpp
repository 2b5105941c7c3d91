// Context: an executable instance of a program, with memory of its own for activations.
#pragma once

#include <memory>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/runtime/program_file.hpp"

namespace caffe::runtime {

// The text and weights that contexts of one program share; weights are in the kernels' order.
struct LoadedProgram {
  explicit LoadedProgram(ProgramFile file)
      : file(std::move(file)), packed(this->file.steps.size()) {}

  ProgramFile file;
  // By tensor: uses that need a constant as it is in the file.
  std::vector<int> uses;
  // Number of threads that kernels were chosen for: the order of the weights depends on it.
  int threads = 0;
  // By step: weights in the order of the step's kernel, and their size in bytes; null if the kernel
  // reads them unchanged.
  struct Packed {
    int operand = 0;
    std::shared_ptr<void> bytes;
    size_t size = 0;
  };
  std::vector<Packed> packed;
};

// One thread at a time; contexts of one program may run in parallel.
class CAFFE_EXPORT Context {
 public:
  // Chooses kernels and allocates memory. Throws Unsupported, naming the layer, if this processor
  // has no kernel for it.
  explicit Context(ProgramFile file);
  // Makes another context with the same weights and as many threads as `other`.
  Context(const Context& other);
  Context& operator=(const Context&) = delete;
  ~Context();

  size_t num_inputs() const;
  size_t num_outputs() const;
  const std::string& input_name(size_t i) const;
  const std::string& output_name(size_t i) const;
  // Memory that Run() reads and writes. Fill each input before each run.
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
  // Expands weights that are stored as 8-bit numbers to floats: for the program's lifetime if
  // kernels read floats, or only to pack them.
  void Unfold(int tensor);
  std::shared_ptr<void> Unfolded(const ProgramFile::Tensor& tensor) const;
  void CountUses();
  // Frees a constant after its last use.
  void EndUse(int tensor);

  const std::shared_ptr<LoadedProgram> program_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<void> activations_, workspace_;
  std::vector<Step> steps_;
};

}  // namespace caffe::runtime
