// The memory of one program: its arena and workspace, and the addresses of its steps' operands.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "caffe/plan/program.hpp"

namespace caffe {

// Tensors in the arena have fixed addresses after Allocate(). Those of tensors outside the arena
// are looked up before each run, because their owners may have reshaped, shared or written them
// since. Operands of steps that make copies of weights have addresses only while their step runs.
class ProgramMemory {
 public:
  // Memory that one program may leave to another one.
  struct Blocks {
    std::shared_ptr<void> arena, workspace;
    int64_t arena_bytes = 0, workspace_bytes = 0;  // may be more than a program needs
  };

  explicit ProgramMemory(std::shared_ptr<const Program> program);

  // Sets the memory of tensors outside the arena.
  void Bind(Bindings bindings);
  const Bindings& bindings() const { return bindings_; }

  // Allocates what is not allocated yet, from offered blocks if they are large enough.
  void Allocate();
  void Offer(Blocks blocks) { offered_ = std::move(blocks); }
  // Gives up the blocks, including offered ones that are unused. Allocate() must follow.
  Blocks Release();

  // Looks up the addresses of tensors outside the arena. Returns true if one has changed.
  bool Refresh();
  // Marks tensors outside the arena that steps write as written, except copies of weights.
  void MarkOutputsWritten();

  // Gives the operands of a step that makes a copy their addresses until the destructor. Weights
  // are borrowed, so that those with an origin are freed afterwards.
  class CopyOperands {
   public:
    // `keeps_inputs_away`: does not bring weights, or copies of them, into memory.
    CopyOperands(ProgramMemory* memory, size_t copy, bool keeps_inputs_away);
    ~CopyOperands();
    CopyOperands(const CopyOperands&) = delete;
    CopyOperands& operator=(const CopyOperands&) = delete;

   private:
    void Release();

    ProgramMemory& memory_;
    const size_t copy_;
    size_t borrowed_ = 0;  // number of weights
  };

  // Gives the operands of a loop's steps the addresses of a round's items until the destructor,
  // which gives back those of the first round.
  class RoundOperands {
   public:
    RoundOperands(ProgramMemory* memory, const Program::Loop& loop, int64_t round);
    ~RoundOperands();
    RoundOperands(const RoundOperands&) = delete;
    RoundOperands& operator=(const RoundOperands&) = delete;

   private:
    ProgramMemory& memory_;
    const Program::Loop& loop_;
    const int64_t first_item_;
  };

  std::span<const TensorView> inputs(size_t step) const { return operands_[step].inputs; }
  std::span<const TensorView> outputs(size_t step) const { return operands_[step].outputs; }
  void* arena() const { return blocks_.arena.get(); }
  size_t arena_bytes() const { return static_cast<size_t>(blocks_.arena_bytes); }
  void* workspace() const { return blocks_.workspace.get(); }

  // Copies the given tensors of the arena from the same tensors of another program of the same net,
  // if it has them.
  void CopyFrom(const ProgramMemory& other, const std::set<int>& tensors);

 private:
  struct Operands {
    std::vector<TensorView> inputs, outputs;
  };
  // An operand outside the arena.
  struct BoundOperand {
    TensorView* view = nullptr;
    SyncedTensor* tensor = nullptr;
    int64_t offset = 0;  // in bytes
    bool is_output = false;
    bool is_param = false;
  };

  void MoveOperands(const Program::Loop& loop, int64_t items);
  void BindOperands();
  void BindOperandsOf(size_t step, bool are_outputs);
  // Tensors in the arena, by names that are the same in all programs of one net.
  std::map<std::string, int> ArenaTensors() const;
  TensorView ArenaView(int tensor) const;

  const std::shared_ptr<const Program> program_;
  Bindings bindings_;
  Blocks blocks_, offered_;
  std::vector<Operands> operands_;                    // by step
  std::vector<BoundOperand> bound_;                   // of other steps than the next ones
  std::vector<std::vector<BoundOperand>> of_copies_;  // by copy: those of its step
  std::set<int> copied_;                              // tensors that are copies
};

}  // namespace caffe
